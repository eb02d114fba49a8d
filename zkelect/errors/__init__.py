"""Every error zkelect raises: one root, split by whose fault it is.

    ZkelectError
      Misuse        the call was wrong: change the program
      Lost          leadership or session is gone: stop the work, stand again
      Refused       a guarded store said no: somebody newer has been there
      Unreachable   ZooKeeper, or a store, could not be asked: try again or mend it

Data are attributes; the message says what was wrong, the value, and what to do.
Errors of other libraries are translated once, where they arise, and stay
attached as ``__cause__``.
"""

from __future__ import annotations

from zkelect.errors.lost import (
    LeadershipLost,
    LeadershipSuspended,
    Lost,
)
from zkelect.errors.misuse import (
    CampaignInProgress,
    ElectionPaused,
    ForeignCandidate,
    ForeignCompany,
    InvalidArgument,
    LeaderPresent,
    Misuse,
    MonkeyPatched,
    NameTaken,
    NothingToAdopt,
    NotStanding,
    SessionClosed,
    SessionForked,
    SwitchoverInProgress,
)
from zkelect.errors.refused import (
    DomainTaken,
    EnsembleWentBack,
    Fenced,
    FenceStateLost,
    LineageMismatch,
    Refused,
    StoreBusy,
    TokenConflict,
    Unclaimed,
    UnfitStore,
)
from zkelect.errors.root import ZkelectError
from zkelect.errors.unreachable import (
    AuthenticationFailed,
    ConnectFailed,
    EvictionFailed,
    NobodyLeads,
    NotElected,
    PermissionDenied,
    RequestFailed,
    SequenceExhausted,
    ServerTooOld,
    SwitchoverFailed,
    TlsFailed,
    Unreachable,
)

__all__ = [
    "AuthenticationFailed",
    "CampaignInProgress",
    "ConnectFailed",
    "DomainTaken",
    "ElectionPaused",
    "EnsembleWentBack",
    "EvictionFailed",
    "FenceStateLost",
    "Fenced",
    "ForeignCandidate",
    "ForeignCompany",
    "InvalidArgument",
    "LeaderPresent",
    "LeadershipLost",
    "LeadershipSuspended",
    "LineageMismatch",
    "Lost",
    "Misuse",
    "MonkeyPatched",
    "NameTaken",
    "NobodyLeads",
    "NotElected",
    "NotStanding",
    "NothingToAdopt",
    "PermissionDenied",
    "Refused",
    "RequestFailed",
    "SequenceExhausted",
    "ServerTooOld",
    "SessionClosed",
    "SessionForked",
    "StoreBusy",
    "SwitchoverFailed",
    "SwitchoverInProgress",
    "TlsFailed",
    "TokenConflict",
    "Unclaimed",
    "UnfitStore",
    "Unreachable",
    "ZkelectError",
]
