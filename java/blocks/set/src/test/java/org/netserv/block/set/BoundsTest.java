// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.set;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.net.http.HttpRequest;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Goes to each bound of the servlet engine from outside. */
class BoundsTest {
    private static final String GET = "GET /jakarta HTTP/1.1\r\nHost: x\r\n";

    @TempDir
    Path folder;

    private Container container;

    private void start(Map<String, String> settings) throws Exception {
        container = new Container(folder, settings);
        container.install(BlocksTest.jakarta().write(folder));
    }

    @AfterEach
    void stop() throws Exception {
        container.close();
    }

    private Socket connect() throws IOException {
        Socket socket = new Socket("127.0.0.1", container.port());
        socket.setSoTimeout(8_000);
        return socket;
    }

    private static void send(Socket socket, String text) throws IOException {
        socket.getOutputStream().write(text.getBytes(StandardCharsets.US_ASCII));
    }

    /** Reads up to the end of the connection. */
    private static String rest(Socket socket) throws IOException {
        return new String(socket.getInputStream().readAllBytes(), StandardCharsets.US_ASCII);
    }

    /** Reads one answer, which has a length and that is one digit. */
    private static String answer(Socket socket) throws IOException {
        InputStream in = socket.getInputStream();
        StringBuilder text = new StringBuilder();
        while (!text.toString().contains("\r\n\r\n")) {
            int next = in.read();
            if (next < 0) {
                return text.toString();
            }
            text.append((char) next);
        }
        String length = text.toString().replaceAll("(?s).*Content-Length: (\\d+).*", "$1");
        return text + new String(in.readNBytes(Integer.parseInt(length)), StandardCharsets.US_ASCII);
    }

    @Test
    void headersAreBounded() throws Exception {
        start(Map.of());
        try (Socket socket = connect()) {
            send(socket, GET + "Long: " + "a".repeat(7_000) + "\r\n\r\n");
            assertTrue(answer(socket).startsWith("HTTP/1.1 200"));
            send(socket, GET + "Long: " + "a".repeat(9_000) + "\r\n\r\n");
            assertTrue(rest(socket).startsWith("HTTP/1.1 431"));
        }
        assertEquals(200, container.get("/jakarta").statusCode());
    }

    @Test
    void bodiesAreBounded() throws Exception {
        start(Map.of("org.netserv.block.http.body-bytes", "1000"));
        assertEquals("jakarta 1000", container.post("/jakarta", "text/plain", "a".repeat(1_000)).body());
        assertEquals(413, container.post("/jakarta", "text/plain", "a".repeat(1_001)).statusCode());
        try (Socket socket = connect()) {
            send(socket, GET.replace("GET", "POST") + "Transfer-Encoding: chunked\r\n\r\n");
            send(socket, ("1F4\r\n" + "a".repeat(500) + "\r\n").repeat(3) + "0\r\n\r\n");
            String answer = answer(socket);
            assertTrue(answer.startsWith("HTTP/1.1 500"), answer + container.log);
        }
        assertEquals(200, container.get("/jakarta").statusCode());
    }

    /** A client that sends a byte now and then is not idle, but it is too slow for its headers. */
    @Test
    void slowHeadersEndTheConnection() throws Exception {
        start(Map.of("org.netserv.block.http.header-ms", "1000"));
        try (Socket socket = connect()) {
            send(socket, GET);
            socket.setSoTimeout(100);
            long start = System.nanoTime();
            assertTrue(closedWhileSending(socket, start), "open after 40 s");
            long ms = (System.nanoTime() - start) / 1_000_000;
            assertTrue(ms >= 800, () -> "closed after " + ms + " ms");
        }
        assertEquals(200, container.get("/jakarta").statusCode());
    }

    private static boolean closedWhileSending(Socket socket, long start) throws IOException {
        while (System.nanoTime() - start < 40_000_000_000L) {
            try {
                send(socket, "a");
                if (socket.getInputStream().read() < 0) {
                    return true;
                }
            } catch (SocketTimeoutException still) {
                continue;
            } catch (IOException reset) {
                return true;
            }
        }
        return false;
    }

    /** What takes long is not the headers: the time for them does not count while a request is served. */
    @Test
    void slowBodiesAreNotSlowHeaders() throws Exception {
        start(Map.of("org.netserv.block.http.header-ms", "500", "org.apache.felix.http.timeout", "60000"));
        try (Socket socket = connect()) {
            send(socket, GET.replace("GET", "POST") + "Content-Length: 800000\r\n\r\n");
            long start = System.nanoTime();
            for (int i = 0; i < 8; i++) {
                send(socket, "a".repeat(100_000));
                Thread.sleep(200);
            }
            assertTrue(System.nanoTime() - start > 1_500_000_000L);
            assertTrue(answer(socket).endsWith("jakarta 800000"));
        }
    }

    @Test
    void bodiesHaveALeastPace() throws Exception {
        start(Map.of());
        try (Socket socket = connect()) {
            send(socket, GET.replace("GET", "POST") + "Content-Length: 8000\r\n\r\n");
            socket.setSoTimeout(100);
            assertTrue(closedWhileSending(socket, System.nanoTime()), "open after 40 s");
        }
    }

    @Test
    void idleConnectionsEnd() throws Exception {
        start(Map.of("org.apache.felix.http.timeout", "2000"));
        try (Socket socket = connect()) {
            send(socket, GET + "\r\n");
            assertTrue(answer(socket).endsWith("jakarta 0"));
            assertEquals("", rest(socket));
        }
    }

    /** One connection too many is not served until another one has ended. */
    @Test
    void connectionsAreBounded() throws Exception {
        start(Map.of("org.netserv.block.http.connections", "5", "org.apache.felix.http.timeout", "60000"));
        List<Socket> open = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            open.add(connect());
            send(open.get(i), GET + "\r\n");
            String answer = answer(open.get(i));
            assertTrue(answer.endsWith("jakarta 0"), i + answer + container.log);
        }
        assertTrue(container.log.stream().anyMatch(line -> line.contains("Network connection limit 5 reached")),
                container.log::toString);
        long start = System.nanoTime();
        while (!servedLate()) {
            assertTrue(System.nanoTime() - start < 40_000_000_000L, "not served after 40 s");
        }
        // With as many as may be, idle ones end after a second: then it is the turn of the late one.
        long ms = (System.nanoTime() - start) / 1_000_000;
        assertTrue(ms >= 500, () -> "served after " + ms + " ms");
        for (Socket socket : open) {
            socket.close();
        }
    }

    /** Connects; tells whether the connection was served, or else closed. */
    private boolean servedLate() throws IOException {
        try (Socket late = connect()) {
            send(late, GET + "\r\n");
            return answer(late).endsWith("jakarta 0");
        } catch (SocketException reset) {
            return false;
        }
    }

    @Test
    void threadsAreBounded() throws Exception {
        start(Map.of());
        List<Socket> open = new ArrayList<>();
        for (int i = 0; i < 30; i++) {
            Socket socket = connect();
            open.add(socket);
            // Long enough to keep the least pace while the others are sent, also on a slow machine.
            send(socket, GET.replace("GET", "POST") + "Content-Length: 40000\r\n\r\n" + "a".repeat(39_999));
        }
        // The last byte comes when all of them have been sent: as many as can be are waiting for it in a thread.
        Set<Thread> threads = Thread.getAllStackTraces().keySet();
        assertTrue(threads.stream().filter(thread -> thread.getName().startsWith("qtp")).count() <= 12);
        for (Socket socket : open) {
            send(socket, "a");
        }
        for (Socket socket : open) {
            String answer = answer(socket);
            assertTrue(answer.endsWith("jakarta 40000"), answer);
            socket.close();
        }
    }

    @Test
    void failuresKeepTheirSecrets() throws Exception {
        start(Map.of());
        String page = container.get("/jakarta/fail").body();
        assertFalse(page.contains("a secret of the inside"), page);
        assertFalse(page.contains("JakartaActivator"), page);
        assertFalse(container.get("/nothing").headers().map().containsKey("server"));
        assertTrue(container.log.stream().anyMatch(line -> line.contains("a secret of the inside")),
                container.log::toString);
    }

    /** Malformed requests are answered or closed, and the next one is served. */
    @Test
    void malformedRequestsDoNoHarm() throws Exception {
        start(Map.of());
        for (String request : List.of("\u0000\u0001\u0002\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
                GET + "Content-Length: -1\r\n\r\n", GET + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
                GET + "Transfer-Encoding: chunked\r\n\r\nXYZ\r\n", "GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n",
                "GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n")) {
            try (Socket socket = connect()) {
                send(socket, request);
                socket.shutdownOutput();
                String answer = rest(socket);
                assertTrue(answer.isEmpty() || answer.matches("(?s)HTTP/1.1 [45]\\d\\d.*"), request + " -> " + answer);
            }
        }
        assertEquals(200, container.send(HttpRequest.newBuilder(container.uri("/jakarta")).build()).statusCode());
    }
}
