// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.bad;

import static java.nio.file.StandardOpenOption.CREATE_NEW;
import static java.nio.file.StandardOpenOption.DELETE_ON_CLOSE;
import static java.nio.file.StandardOpenOption.WRITE;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.DatagramPacket;
import java.net.DatagramSocket;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import org.netserv.block.BlockException;

/** Ways out of the sandbox that must be shut. Each attempt is counted as refused or done. */
final class Escapes {
    private static final int TIMEOUT_MILLIS = 100;

    private Escapes() {
    }

    static void exec(Surroundings surroundings) throws BlockException {
        surroundings.attempt("exec", () -> new ProcessBuilder("/bin/sh", "-c", "id").start());
        surroundings.attempt("exec of the worker", () -> new ProcessBuilder("/worker").start());
        surroundings.attempt("exec by name", () -> Runtime.getRuntime().exec(new String[] {"id"}));
    }

    /** A library of the JDK's own is a whole one. What counts is that it lies where modules can write. */
    static void loadLibrary(Surroundings surroundings) throws BlockException {
        Path own = surroundings.bundle().getDataFile("libbad.so").toPath();
        surroundings.attempt("loading a library", () -> {
            Path library = Path.of(System.getProperty("java.home"), "lib", "libprefs.so");
            Path known = Files.exists(library) ? library : Path.of(System.getProperty("java.home"), "lib", "libzip.so");
            Files.copy(known, own, StandardCopyOption.REPLACE_EXISTING);
            own.toFile().setExecutable(true);
            System.load(own.toString());
        });
    }

    static void openSockets(Surroundings surroundings) throws BlockException {
        String target = surroundings.module().property("target", "127.0.0.1:9");
        int colon = target.lastIndexOf(':');
        String host = target.substring(0, colon);
        int port = Integer.parseInt(target.substring(colon + 1));
        surroundings.attempt("connecting", () -> {
            try (Socket socket = new Socket()) {
                socket.connect(new InetSocketAddress(host, port), TIMEOUT_MILLIS);
            }
        });
        surroundings.attempt("sending", () -> {
            try (DatagramSocket socket = new DatagramSocket()) {
                socket.send(new DatagramPacket(new byte[1], 1, new InetSocketAddress(host, port)));
            }
        });
        surroundings.attempt("listening", () -> {
            try (ServerSocket socket = new ServerSocket(port)) {
                socket.getLocalPort();
            }
        });
    }

    /** Opens and closes: should one of these work, as it does outside of a sandbox, nothing is changed. */
    static void openFiles(Surroundings surroundings) throws BlockException {
        for (String path : new String[] {"/etc/shadow", "/proc/self/environ", "/proc/1/maps", "/sys/kernel/uevent_seqnum",
            "/root/.bashrc", "/dev/mem"}) {
            surroundings.attempt("reading " + path, () -> Files.readAllBytes(Path.of(path)));
        }
        for (String path : new String[] {"/worker", "/etc/passwd", "/etc/hosts", "/java/host/org.netserv.host.jar"}) {
            surroundings.attempt("writing to " + path, () -> FileChannel.open(Path.of(path), WRITE).close());
        }
        for (String path : new String[] {"/bad", "/tmp/bad", "/java/host/bad.jar", "/java/blocks/bad.jar",
            "/java/archive/bad"}) {
            surroundings.attempt("making " + path, () -> {
                FileChannel.open(Path.of(path), WRITE, CREATE_NEW, DELETE_ON_CLOSE).close();
            });
        }
    }

    /** The host's classes are those of the JVM's class path, which no module can be kept from: the process is the wall. */
    static void reflect(Surroundings surroundings) throws BlockException {
        surroundings.attempt("naming the host's class", () -> Class.forName("org.netserv.host.Bridge"));
        surroundings.attempt("calling the host", () -> {
            Class<?> bridge = ClassLoader.getSystemClassLoader().loadClass("org.netserv.host.Bridge");
            Method failed = bridge.getDeclaredMethod("failed", int.class, String.class, String.class, String[].class);
            failed.setAccessible(true);
            failed.invoke(null, Integer.MAX_VALUE, "trapped", "no such slot", new String[0]);
        });
        surroundings.attempt("opening the library", () -> {
            Field value = String.class.getDeclaredField("value");
            value.setAccessible(true);
        });
    }

    /** What only code can do that is let into the JVM's own memory. */
    static void writeToNowhere() throws ReflectiveOperationException {
        Class<?> type = Class.forName("sun.misc.Unsafe");
        Field field = type.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        type.getMethod("putByte", long.class, byte.class).invoke(field.get(null), 0L, (byte) 1);
    }
}
