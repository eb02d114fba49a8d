import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.CountDownLatch;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryForever;
import org.apache.curator.utils.ZKPaths;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.recipes.leader.LeaderElectionSupport;
import org.apache.zookeeper.recipes.leader.LeaderElectionSupport.EventType;
import org.apache.zookeeper.recipes.lock.LockListener;
import org.apache.zookeeper.recipes.lock.WriteLock;

/**
 * A candidate of a Java library as a process; program.py says what it tells and which words it
 * obeys.
 *
 * <p>Arguments: kind, hosts, path, name, session timeout in milliseconds.
 */
public final class Program {
    private interface Candidate {
        void stand() throws Exception;

        void leave() throws Exception;
    }

    private final String hosts;
    private final String path;
    private final String name;
    private final int sessionTimeout;

    private Program(String hosts, String path, String name, int sessionTimeout) {
        this.hosts = hosts;
        this.path = path;
        this.name = name;
        this.sessionTimeout = sessionTimeout;
    }

    public static void main(String[] arguments) throws Exception {
        Program program =
                new Program(
                        arguments[1], arguments[2], arguments[3], Integer.parseInt(arguments[4]));
        Candidate candidate = program.candidate(arguments[0]);
        candidate.stand();
        BufferedReader words = new BufferedReader(new InputStreamReader(System.in));
        for (String word = words.readLine(); word != null; word = words.readLine()) {
            tell("lost"); // an application ends its work first: close() deletes, then calls back
            candidate.leave();
            tell("left");
        }
        Runtime.getRuntime().halt(0);
    }

    /** The instant is CLOCK_MONOTONIC: HotSpot on Linux reads nanoTime() from there. */
    private static synchronized void tell(String event) {
        System.out.println("{\"event\": \"" + event + "\", \"at\": " + System.nanoTime() / 1e9 + "}");
    }

    private Candidate candidate(String kind) throws Exception {
        switch (kind) {
            case "curator-latch":
                return latch(curator());
            case "curator-mutex":
                return mutex(curator());
            case "curator-selector":
                return selector(curator());
            case "java-lock":
                return writeLock();
            case "java-election":
                return leaderElection();
            default:
                throw new IllegalArgumentException(kind);
        }
    }

    // --- Curator ---------------------------------------------------------------------------------

    private CuratorFramework curator() {
        CuratorFramework client =
                CuratorFrameworkFactory.newClient(
                        hosts, sessionTimeout, sessionTimeout, new RetryForever(100));
        client.getConnectionStateListenable().addListener((c, state) -> tellState(state));
        client.start();
        return client;
    }

    private static void tellState(ConnectionState state) {
        if (state == ConnectionState.SUSPENDED) {
            tell("suspended");
        } else if (state == ConnectionState.LOST) {
            tell("lost");
        }
    }

    private Candidate latch(CuratorFramework client) {
        LeaderLatch latch = new LeaderLatch(client, path, name);
        latch.addListener(
                new LeaderLatchListener() {
                    @Override
                    public void isLeader() {
                        tell("elected");
                    }

                    @Override
                    public void notLeader() {
                        tell("lost");
                    }
                });
        return new Candidate() {
            @Override
            public void stand() throws Exception {
                latch.start();
            }

            @Override
            public void leave() throws Exception {
                latch.close();
            }
        };
    }

    private Candidate mutex(CuratorFramework client) {
        InterProcessMutex mutex = new InterProcessMutex(client, path);
        return onThread(
                leaving -> {
                    mutex.acquire();
                    tell("elected");
                    leaving.await();
                    mutex.release();
                });
    }

    private Candidate selector(CuratorFramework client) {
        CountDownLatch leaving = new CountDownLatch(1);
        CountDownLatch left = new CountDownLatch(1);
        LeaderSelector selector =
                new LeaderSelector(
                        client,
                        path,
                        new LeaderSelectorListenerAdapter() {
                            @Override
                            public void takeLeadership(CuratorFramework c) throws Exception {
                                tell("elected");
                                try {
                                    leaving.await();
                                } catch (InterruptedException cancelled) {
                                    tell("lost");
                                } finally {
                                    left.countDown();
                                }
                            }
                        });
        selector.setId(name);
        return new Candidate() {
            @Override
            public void stand() {
                selector.start();
            }

            @Override
            public void leave() throws Exception {
                leaving.countDown();
                left.await();
                selector.close();
            }
        };
    }

    // --- ZooKeeper's own recipes -----------------------------------------------------------------

    private ZooKeeper zookeeper() throws Exception {
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper zookeeper =
                new ZooKeeper(
                        hosts,
                        sessionTimeout,
                        event -> {
                            if (event.getState() == KeeperState.SyncConnected) {
                                connected.countDown();
                            } else if (event.getState() == KeeperState.Disconnected) {
                                tell("suspended");
                            } else if (event.getState() == KeeperState.Expired) {
                                tell("lost");
                            }
                        });
        connected.await();
        return zookeeper;
    }

    private Candidate writeLock() throws Exception {
        WriteLock lock = new WriteLock(zookeeper(), path, null, told());
        return new Candidate() {
            @Override
            public void stand() throws Exception {
                lock.lock();
            }

            @Override
            public void leave() throws Exception {
                lock.unlock();
            }
        };
    }

    private static LockListener told() {
        return new LockListener() {
            @Override
            public void lockAcquired() {
                tell("elected");
            }

            @Override
            public void lockReleased() {
                tell("lost");
            }
        };
    }

    private Candidate leaderElection() throws Exception {
        ZooKeeper zookeeper = zookeeper();
        ZKPaths.mkdirs(zookeeper, path); // it does not make its parent
        LeaderElectionSupport election = new LeaderElectionSupport();
        election.setZooKeeper(zookeeper);
        election.setRootNodeName(path);
        election.setHostName(name);
        election.addListener(
                event -> {
                    if (event == EventType.ELECTED_COMPLETE) {
                        tell("elected");
                    }
                });
        return new Candidate() {
            @Override
            public void stand() {
                try {
                    election.start();
                } catch (NumberFormatException nameOfSomebodyElse) {
                    tell("failed");
                }
            }

            @Override
            public void leave() {
                election.stop();
            }
        };
    }

    // --- locks that belong to the thread that took them ------------------------------------------

    private interface Work {
        void run(CountDownLatch leaving) throws Exception;
    }

    private static Candidate onThread(Work work) {
        CountDownLatch leaving = new CountDownLatch(1);
        Thread thread =
                new Thread(
                        () -> {
                            try {
                                work.run(leaving);
                            } catch (Exception error) {
                                error.printStackTrace();
                                Runtime.getRuntime().halt(1);
                            }
                        });
        return new Candidate() {
            @Override
            public void stand() {
                thread.start();
            }

            @Override
            public void leave() throws Exception {
                leaving.countDown();
                thread.join();
            }
        };
    }
}
