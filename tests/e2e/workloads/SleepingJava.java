// SPDX-License-Identifier: Apache-2.0
// Threads that wait, each in its way, and what they say of their own stacks:
//
//   THREAD NAME METHOD:LINE...   outermost first; 0: a native method
//
// then "ready".
import java.net.ServerSocket;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.locks.ReentrantLock;

public class SleepingJava {
    interface Wait {
        void run() throws Exception;
    }

    static final long LONG = 10_000_000;
    static final Object monitor = new Object();
    static final ReentrantLock lock = new ReentrantLock();
    static final List<Thread> threads = new ArrayList<>();

    static void sleepBelow(int depth) throws Exception {
        if (depth == 0) {
            Thread.sleep(LONG);
        } else {
            sleepBelow(depth - 1);
        }
    }

    static void hold() throws Exception {
        synchronized (monitor) {
            lock.lock();
            Thread.sleep(LONG);
        }
    }

    static void enterMonitor() {
        synchronized (monitor) {
            throw new IllegalStateException();
        }
    }

    static void waitForNotice() throws Exception {
        Object notice = new Object();
        synchronized (notice) {
            notice.wait();
        }
    }

    // Called often enough to be compiled before it sleeps.
    static int compiled(int depth, boolean sleeps) throws Exception {
        if (depth > 0) {
            return compiled(depth - 1, sleeps) + 1;
        }
        if (sleeps) {
            Thread.sleep(LONG);
        }
        return 0;
    }

    static void warmAndSleep() throws Exception {
        for (int i = 0; i < 100_000; i++) {
            compiled(9, false);
        }
        compiled(9, true);
    }

    static void start(String name, Wait wait) throws Exception {
        Thread thread = new Thread(() -> {
            try {
                wait.run();
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }, name);
        thread.setDaemon(true);
        threads.add(thread);
        thread.start();
        Thread.sleep(20);
    }

    public static void main(String[] arguments) throws Exception {
        start("sleep", () -> sleepBelow(30));
        start("hold", SleepingJava::hold);
        start("monitor", SleepingJava::enterMonitor);
        start("lock", lock::lockInterruptibly);
        start("latch", () -> new CountDownLatch(1).await());
        start("queue", () -> new LinkedBlockingQueue<String>().take());
        start("notice", SleepingJava::waitForNotice);
        start("accept", () -> new ServerSocket(0).accept());
        start("compiled", SleepingJava::warmAndSleep);
        // Until the compilers are done with what was warm.
        Thread.sleep(1000);
        for (Thread thread : threads) {
            StringBuilder line = new StringBuilder("THREAD " + thread.getName());
            StackTraceElement[] stack = thread.getStackTrace();
            for (int i = stack.length - 1; i >= 0; i--) {
                line.append(' ').append(stack[i].getClassName()).append('.')
                    .append(stack[i].getMethodName()).append(':')
                    .append(Math.max(stack[i].getLineNumber(), 0));
            }
            System.out.println(line);
        }
        System.out.println("ready");
        Thread.sleep(LONG);
    }
}
