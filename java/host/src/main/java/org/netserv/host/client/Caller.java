// SPDX-License-Identifier: Apache-2.0
package org.netserv.host.client;

import java.io.Closeable;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLSession;
import org.netserv.block.BlockException;
import org.netserv.block.BlockException.Code;
import org.netserv.block.HttpCaller;

/** What one module has of the client. */
public final class Caller implements HttpCaller, Closeable {
    private final SharedClient shared;
    private final long bodyBytesMax;
    private final Duration callMax;
    private final Set<Body> bodies = new HashSet<>();
    private int requests;
    private boolean isClosed;

    /**
     * Makes a module's client.
     *
     * @param shared the client of all modules
     */
    public Caller(SharedClient shared) {
        this(shared, BODY_BYTES_MAX, CALL_MAX);
    }

    /** For tests, with other bounds. */
    Caller(SharedClient shared, long bodyBytesMax, Duration callMax) {
        this.shared = shared;
        this.bodyBytesMax = bodyBytesMax;
        this.callMax = callMax;
    }

    @Override
    public HttpResponse<InputStream> send(HttpRequest request)
            throws BlockException, IOException, InterruptedException {
        begin();
        long start = System.nanoTime();
        Body body = null;
        try {
            HttpResponse<InputStream> response =
                    shared.client().send(bounded(request), HttpResponse.BodyHandlers.ofInputStream());
            body = new Body(response.body());
            check(response.headers(), body);
            keep(body, callMax.toNanos() - (System.nanoTime() - start));
            return new Answer(response, body);
        } finally {
            if (body == null) {
                end();
            }
        }
    }

    /** Closes all responses; no request can be sent any more. */
    @Override
    public void close() throws IOException {
        List<Body> left;
        synchronized (bodies) {
            isClosed = true;
            left = new ArrayList<>(bodies);
        }
        for (Body body : left) {
            body.close();
        }
    }

    private static HttpRequest bounded(HttpRequest request) {
        Duration timeout = request.timeout().filter(wanted -> wanted.compareTo(HEAD_MAX) < 0).orElse(HEAD_MAX);
        HttpRequest.Builder builder = HttpRequest.newBuilder(request, (name, value) -> true).timeout(timeout);
        if (request.version().isEmpty() && "http".equalsIgnoreCase(request.uri().getScheme())) {
            // Servers that do not know the upgrade to HTTP/2 may not like to be asked.
            builder.version(HttpClient.Version.HTTP_1_1);
        }
        return builder.build();
    }

    private void begin() throws BlockException {
        synchronized (bodies) {
            if (isClosed || requests >= REQUESTS_MAX) {
                throw new BlockException(Code.QUOTA, "a module may have 16 requests at a time");
            }
            requests++;
        }
    }

    private void end() {
        synchronized (bodies) {
            requests--;
        }
    }

    private static void check(HttpHeaders headers, Body body) throws BlockException, IOException {
        long bytes = 0;
        for (var header : headers.map().entrySet()) {
            for (String value : header.getValue()) {
                bytes += header.getKey().length() + value.length();
            }
        }
        if (bytes > HEADER_BYTES_MAX) {
            body.close();
            throw new BlockException(Code.TOO_LARGE, "the response has more than 65,536 bytes of headers");
        }
    }

    private void keep(Body body, long nanos) throws IOException {
        boolean isLate;
        synchronized (bodies) {
            isLate = isClosed;
            bodies.add(body);
        }
        if (isLate) {
            body.close();
            return;
        }
        body.deadline = shared.deadlines().schedule(body::expire, Math.max(nanos, 0), TimeUnit.NANOSECONDS);
        if (body.isEnded()) {
            body.deadline.cancel(false);
        }
    }

    /** A response's body, which counts its bytes and knows when it is at its end. */
    private final class Body extends FilterInputStream {
        private long count;
        private boolean isEnded;
        private volatile boolean isLate;
        private volatile Future<?> deadline;

        Body(InputStream from) {
            super(from);
        }

        @Override
        public int read() throws IOException {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
        }

        @Override
        public int read(byte[] into, int start, int length) throws IOException {
            int read;
            try {
                read = super.read(into, start, length);
            } catch (IOException broken) {
                leave();
                throw isLate ? late() : broken;
            }
            if (isLate) {
                throw late();
            }
            if (read < 0) {
                leave();
                return read;
            }
            count += read;
            if (count > bodyBytesMax) {
                close();
                throw new IOException("the response is longer than " + bodyBytesMax + " bytes");
            }
            return read;
        }

        @Override
        public boolean markSupported() {
            return false;
        }

        @Override
        public long skip(long wanted) throws IOException {
            byte[] skipped = new byte[(int) Math.min(Math.max(wanted, 0), 8192)];
            return Math.max(read(skipped, 0, skipped.length), 0);
        }

        @Override
        public void close() throws IOException {
            leave();
            super.close();
        }

        private IOException late() {
            return new IOException("the response took more than " + callMax.toMillis() + " ms");
        }

        private void expire() {
            isLate = true;
            try {
                close();
            } catch (IOException gone) {
                // It was to be gone.
            }
        }

        private boolean isEnded() {
            synchronized (bodies) {
                return isEnded;
            }
        }

        private void leave() {
            synchronized (bodies) {
                if (isEnded) {
                    return;
                }
                isEnded = true;
                bodies.remove(this);
                requests--;
            }
            Future<?> due = deadline;
            if (due != null) {
                due.cancel(false);
            }
        }
    }

    /** A response with a bounded body. */
    private record Answer(HttpResponse<InputStream> of, InputStream body) implements HttpResponse<InputStream> {
        @Override
        public int statusCode() {
            return of.statusCode();
        }

        @Override
        public HttpRequest request() {
            return of.request();
        }

        @Override
        public Optional<HttpResponse<InputStream>> previousResponse() {
            return Optional.empty();
        }

        @Override
        public HttpHeaders headers() {
            return of.headers();
        }

        @Override
        public Optional<SSLSession> sslSession() {
            return of.sslSession();
        }

        @Override
        public URI uri() {
            return of.uri();
        }

        @Override
        public HttpClient.Version version() {
            return of.version();
        }
    }
}
