"""Stories: whole campaigns as transcripts that a person can read, replayed and compared.

Each file in stories/ is a script, flush left, and what came of it, indented. The facts a
story is told for are asserted here as well, so that a transcript written anew by
``--rewrite-stories`` cannot bless a wrong outcome.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from stage import Stage

from zkelect.core import events as ev
from zkelect.core.events import Reason
from zkelect.core.state import Phase
from zkelect.errors import SequenceExhausted

STORIES = Path(__file__).with_name("stories")


def told(name: str) -> Stage:
    stage = Stage()
    stage.play((STORIES / f"{name}.txt").read_text("utf-8"))
    return stage


def tokens(stage: Stage, name: str) -> list[int]:
    return [grant.czxid for grant in stage[name].grants]


def reasons(stage: Stage, name: str) -> list[Reason]:
    return [void.reason for void in stage[name].voids]


def failures(stage: Stage, name: str) -> list[type[Exception]]:
    return [type(what.error) for what in stage[name].performed if isinstance(what, ev.Fail)]


@pytest.mark.parametrize("story", sorted(STORIES.glob("*.txt")), ids=lambda story: story.stem)
def test_the_story_goes_as_it_is_written(story: Path, request: pytest.FixtureRequest) -> None:
    goes = "\n".join(told(story.stem).transcript) + "\n"
    if request.config.getoption("--rewrite-stories"):
        story.write_text(goes, "utf-8")
    assert goes == story.read_text("utf-8")


def test_no_line_of_a_story_is_passed_over() -> None:
    with pytest.raises(AssertionError, match="no story can say 'A' 'flies'"):
        Stage().play("A flies")


# --- joining and leading -------------------------------------------------------------------


def test_three_candidates_the_first_dies_the_second_leads_the_third_watches_it() -> None:
    stage = told("three_candidates")
    assert stage.leaders == ["B"]
    assert stage.roll == ["B#2", "C#3"]
    assert stage["C"].watched == ["B#2", "C#3"]


def test_the_heir_leads_without_a_request_of_its_own() -> None:
    done = told("three_candidates")["B"].performed
    asked = [type(what) for what in done if isinstance(what, ev.Request)]
    assert asked == [ev.Create, ev.ReadRoll, ev.Watch, ev.Watch, ev.ReadRecord]
    granted = next(at for at, what in enumerate(done) if isinstance(what, ev.Grant))
    assert granted == len(asked)


def test_a_leader_that_resigns_hands_over() -> None:
    stage = told("resign_and_handover")
    assert (stage.leaders, stage.roll) == (["B"], ["B#1", "A2#2"])
    assert reasons(stage, "A") == [Reason.RESIGNED]


def test_a_body_that_returns_resigns() -> None:
    stage = told("body_returns")
    assert (stage.leaders, stage.roll) == (["B"], ["B#1"])
    assert reasons(stage, "A") == [Reason.RESIGNED]


def test_the_first_without_a_lease_leads_when_it_is_proven() -> None:
    stage = told("lease_missing")
    granted_by = stage.transcript.index("  A <- Proven") + 1
    assert stage.transcript[granted_by].startswith("  A -> Grant A#0")


def test_an_event_counts_before_the_reply_that_set_its_watch() -> None:
    stage = told("event_before_reply")
    assert stage.leaders == ["B"]
    late = stage.transcript.index("  B <- Watched A#0 of a1")
    assert stage.transcript.index("  B <- Vanished A#0") < late
    assert stage.transcript[late + 1 :] == [
        "  B <- Recorded generation 1",  # read behind the watch, so that no pause is passed over
        "  B -> Grant B#1 with token 2",
        "  B is preparing",
    ]


def test_a_late_roll_never_undoes_a_grant() -> None:
    stage = told("late_roll")
    assert stage.leaders == ["B"]
    assert stage.transcript[-1] == "  B <- Rolled A#0 B#1"


# --- record and parent ---------------------------------------------------------------------


def test_who_finds_no_parent_makes_it() -> None:
    assert told("parent_missing").leaders == ["A"]


def test_who_finds_no_record_makes_it_and_stands_anew() -> None:
    stage = told("record_missing")
    assert (stage.leaders, stage.roll) == (["A"], ["A#1"])


def test_another_generation_deposes_the_leader_and_renews_who_waits() -> None:
    stage = told("record_changed")
    assert reasons(stage, "A") == [Reason.RECORD_CHANGED]
    assert [grant.record.generation for grant in stage["B"].grants] == [2]


def test_while_paused_the_leader_stays_and_nobody_follows_it() -> None:
    stage = told("paused")
    assert reasons(stage, "A") == [Reason.RESIGNED]
    assert (stage.leaders, stage["C"].grants) == (["B"], [])
    resumed = stage.transcript.index("somebody resumes the election")
    assert stage.transcript.index("  B -> Grant B#1 with token 2") > resumed


def test_a_change_that_is_not_read_yet_may_be_a_pause() -> None:
    stage = told("paused_unheard")
    assert (stage.leaders, stage.roll) == ([], ["B#1"])


def test_only_the_latest_of_several_reads_counts() -> None:
    stage = told("paused_and_resumed_at_once")
    assert "  B <- Recorded generation 1" in stage.transcript
    assert (stage.leaders, stage["B"].grants) == ([], [])


def test_a_pause_made_while_the_heir_was_away_is_heeded_when_it_is_back() -> None:
    stage = told("paused_while_away")
    assert stage.leaders == ["B"]
    resumed = stage.transcript.index("somebody resumes the election")
    assert stage.transcript.index("  B is preparing") > resumed


def test_who_waits_far_behind_learns_of_another_generation_from_the_roll() -> None:
    record = told("record_changed_far_behind")["C"].state.record
    assert record is not None
    assert record.generation == 2


def test_a_deleted_parent_is_made_anew_by_who_waits() -> None:
    stage = told("parent_deleted")
    assert (stage.leaders, stage.roll) == (["C"], ["C#0"])
    assert reasons(stage, "A") == reasons(stage, "B") == [Reason.EVICTED]


# --- cases of the catalogue ----------------------------------------------------------------


def test_h07_connected_is_no_proof() -> None:
    stage = told("h07_connected_but_not_proven")
    assert stage["A"].state.connected
    assert (stage.leaders, reasons(stage, "A")) == ([], [Reason.LAPSED])


def test_h08_an_evicted_leader_is_deposed_and_comes_back_behind() -> None:
    stage = told("h08_leader_evicted")
    assert (stage.leaders, stage.roll) == (["B"], ["B#1", "A2#2"])
    assert reasons(stage, "A") == [Reason.EVICTED]


def test_h08_a_leader_that_is_asked_to_go_takes_its_znode_away_itself() -> None:
    stage = told("h08_leader_asked_to_go")
    assert (stage.leaders, reasons(stage, "A")) == (["B"], [Reason.EVICTED])
    returned = stage.transcript.index("A's body returns")
    assert stage.transcript.index("  B -> Grant B#1 with token 2") > returned


def test_h08_a_leader_that_is_cut_off_is_over_before_its_znode_is_deleted() -> None:
    stage = told("h08_leader_asked_to_go_while_away")
    assert (stage.leaders, reasons(stage, "A")) == (["B"], [Reason.LAPSED])
    over = stage.transcript.index("  A -> Void (lapsed), StartGrace")
    assert over < stage.transcript.index("somebody deletes A#0")


def test_h09_an_evicted_waiter_stands_again_and_disturbs_nobody() -> None:
    stage = told("h09_waiter_evicted")
    assert (stage.leaders, stage.roll) == (["A"], ["A#0", "C#2", "B#3"])
    assert not [line for line in stage.transcript[8:] if line.startswith("  A")]


def test_h10_another_session_ends_the_term_at_once() -> None:
    stage = told("h10_session_swapped")
    assert reasons(stage, "A") == [Reason.EXPIRED]
    assert stage.leaders == ["B"]


def test_h13_one_body_at_any_time_however_often_it_is_lost_and_regained() -> None:
    stage = told("h13_lost_and_regained")
    for times in range(2, 6):
        assert tokens(stage, "A") == sorted(set(tokens(stage, "A")))
        assert (len(stage["A"].grants), len(stage["A"].voids)) == (times, times - 1)
        stage.play("A stalls and A's lease runs out\nA campaigns")
        assert len(stage["A"].grants) == times, "the body has not returned"
        stage.play("A's body returns\nA's lease is proven")


def test_h15_the_znode_stays_until_the_body_of_a_resigned_leader_returns() -> None:
    stage = told("h15_body_ignores_the_loss")
    returned = stage.transcript.index("  A <- Returned")
    assert stage.transcript[returned + 1] == "  A -> Withdraw A#0"
    assert stage.leaders == ["B"]


def test_h18_suspended_and_back_twenty_times_keeps_token_and_place() -> None:
    stage = told("h18_suspended_and_back")
    for _ in range(19):
        stage.play("A loses its link\nA reconnects\nB loses its link\nB reconnects")
    assert (stage.leaders, stage.roll) == (["A"], ["A#0", "B#1"])
    assert (tokens(stage, "A"), reasons(stage, "A")) == ([1], [])


def test_h20_one_znode_when_the_reply_is_lost() -> None:
    stage = told("h20_reply_lost_session_kept")
    assert stage.roll == ["B#0", "A#1"]
    stage.play("B's body returns")
    assert tokens(stage, "A") == [2]


def test_h21_the_znode_of_an_expired_session_is_not_adopted() -> None:
    stage = told("h21_reply_lost_session_expired")
    assert (stage.leaders, stage.roll) == (["A"], ["A2#1"])
    assert tokens(stage, "A") == [3]


def test_h22_a_barrier_comes_before_the_roll_of_a_lagging_server() -> None:
    stage = told("h22_server_lags")
    assert (stage.leaders, stage.roll) == (["A"], ["A#0"])


def test_h22_of_several_of_ours_the_lowest_stays() -> None:
    stage = told("h22_several_of_ours")
    assert (stage.leaders, stage.roll) == (["A"], ["A#0"])
    assert tokens(stage, "A") == [1]


def test_h22_whoever_cancels_while_it_looks_leaves_nothing() -> None:
    stage = told("h22_cancelled_while_looking")
    assert stage.roll == []
    assert stage["A"].finished == [1]


def test_h23_an_old_znode_of_ours_is_not_our_candidate() -> None:
    stage = told("h23_own_old_node_is_first")
    assert tokens(stage, "A") == [2]
    assert "  A is waiting behind A#0" in stage.transcript


def test_h24_a_late_answer_is_dropped_and_its_znode_deleted() -> None:
    stage = told("h24_late_answer")
    assert (stage.leaders, stage.roll) == (["A"], ["A#1"])
    assert tokens(stage, "A") == [4]


@pytest.mark.parametrize("story", ["cancelled_while_suspended", "cancelled_before_the_answer"])
def test_h25_a_cancelled_campaign_leaves_nothing(story: str) -> None:
    stage = told(f"h25_{story}")
    assert stage.roll == []
    assert stage["A"].finished == [1]
    assert not stage["A"].grants


def test_h26_a_lost_deletion_is_done_before_the_next_campaign() -> None:
    stage = told("h26_deletion_lost")
    assert (stage.leaders, stage.roll) == (["B"], ["B#1", "A2#2"])


def test_h26_a_lost_deletion_of_a_stray_is_asked_for_again() -> None:
    stage = told("h26_stray_deletion_lost")
    assert (stage.leaders, stage.roll) == (["A"], ["A#2"])
    assert not stage["A"].state.doomed


def test_h27_whose_predecessor_vanishes_walks_on_and_keeps_its_znode() -> None:
    stage = told("h27_predecessor_vanishes")
    assert stage.roll == ["A#0", "C#2"]
    assert stage["C"].watched == ["A#0", "C#2"]


def test_h28_who_lost_its_session_while_waiting_leads_with_a_new_znode_only() -> None:
    stage = told("h28_session_dies_while_waiting")
    assert (stage.leaders, stage.roll) == (["B"], ["B2#2"])
    assert tokens(stage, "B") == [5]


def test_h29_a_swallowed_event_is_made_good_by_the_slow_reread() -> None:
    stage = told("h29_event_swallowed")
    reread = stage.transcript.index("B rereads the roll")
    assert not [line for line in stage.transcript[:reread] if line.startswith("  B -> Grant")]
    assert stage.leaders == ["B"]


def test_h33_a_parent_deleted_while_five_join_is_made_anew() -> None:
    stage = told("h33_parent_deleted_while_joining")
    assert (stage.leaders, stage.roll) == (["D"], ["D#0", "E#1", "B#2", "C#3"])


def test_h34_who_gets_a_number_past_the_end_takes_it_back() -> None:
    stage = told("h34_own_number_exhausted")
    assert (stage.leaders, stage.roll) == (["A"], ["A#2147483646"])
    assert failures(stage, "B") == [SequenceExhausted]


def test_h34_nobody_of_ours_leads_beside_a_number_past_the_end() -> None:
    stage = told("h34_peer_number_exhausted")
    assert (stage.leaders, stage.roll) == ([], ["K#2147483647"])
    assert failures(stage, "A") == [SequenceExhausted]


def test_h41_after_a_common_end_everybody_rests_before_it_stands_again() -> None:
    stage = Stage()
    crowd = [chr(0x100 + number) for number in range(100)]
    for name in crowd:
        stage.candidate(name).connect()
        stage[name].campaign()
        stage.settle()
    for session_id in tuple(stage.ensemble.alive):
        stage.ensemble.expire(session_id)
    for name in crowd:
        stage[name].drop()
        stage[name].reconnect()
    resting = [name for name in crowd if [type(task) for task in stage[name].tasks] == [ev.Rested]]
    assert resting == crowd[1:], "all but the leader, whose campaign is over"
    assert not stage.ensemble.tree.nodes
    stage.settle()
    assert len(stage.leaders) == 1
    assert len(stage.roll) == 99


def test_h42_one_of_a_thousand_is_woken() -> None:
    stage = Stage()
    crowd = [chr(0x100 + number) for number in range(1000)]
    for name in crowd:
        stage.candidate(name).connect()
        stage[name].campaign()
        while stage.move(stage[name]):
            pass
    for name in crowd:
        stage[name].catch_up()
    stage.transcript.clear()
    stage[crowd[0]].return_body()
    stage.settle()
    woken = {line.split()[0] for line in stage.transcript}
    assert woken == {crowd[0], crowd[1]}
    assert stage.leaders == [crowd[1]]


def test_h45_a_leader_that_hangs_is_followed_when_its_lease_is_over() -> None:
    stage = told("h45_stalled")
    assert reasons(stage, "A") == [Reason.STALLED]
    assert (stage.leaders, stage["A"].state.phase) == (["B"], Phase.LEAVING)
