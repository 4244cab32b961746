// SPDX-License-Identifier: Apache-2.0
package org.netserv.block;

import java.io.IOException;
import java.io.InputStream;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import org.osgi.annotation.versioning.ProviderType;

/**
 * Requests to HTTP servers: HTTP/1.1 and HTTP/2, by the JDK's client, with bounds. Where it may connect is what the
 * user's permissions let out of the container. No redirect is followed, and no proxy or cookie is used. May be used on
 * any thread but the packet thread, which it would hold up. A module that cannot do without says
 * {@code dependencies = ["http-client>=1"]} in its manifest.
 *
 * <pre>{@code
 * HttpCaller http = context.getService(context.getServiceReference(HttpCaller.class));
 * HttpRequest request = HttpRequest.newBuilder(URI.create("http://origin.example/")).timeout(Duration.ofSeconds(5)).build();
 * HttpResponse<InputStream> response = http.send(request);
 * // It counts as one of the module's until its body is at its end or closed.
 * try (InputStream body = response.body()) {
 *     log.info(response.statusCode() + ": " + body.readNBytes(1000).length + " bytes");
 * }
 * }</pre>
 */
@ProviderType
public interface HttpCaller {
    /** Requests of a module at a time; one counts until its response's body is at its end or closed. */
    int REQUESTS_MAX = 16;
    /** How long a connection may take to come about. */
    Duration CONNECT_MAX = Duration.ofSeconds(5);
    /** How long a response's head may take at most; a request may say less. */
    Duration HEAD_MAX = Duration.ofSeconds(30);
    /** How long all of a request may take, to the end of the response's body. */
    Duration CALL_MAX = Duration.ofSeconds(120);
    /** Bytes of a response's headers, names and values together. */
    int HEADER_BYTES_MAX = 65_536;
    /** Bytes of a response's body. */
    long BODY_BYTES_MAX = 1L << 28;

    /**
     * Sends a request, and waits for the head of the response.
     *
     * @param request the request, for {@code http} or {@code https}
     * @return the response; close its body. Reading throws {@link IOException} beyond {@link #BODY_BYTES_MAX} or
     *     {@link #CALL_MAX}
     * @throws BlockException {@code QUOTA} with {@link #REQUESTS_MAX} requests, {@code TOO_LARGE} for a response with
     *     more headers than allowed
     * @throws IOException if there is no connection or no response in time
     * @throws InterruptedException if the thread is interrupted
     */
    HttpResponse<InputStream> send(HttpRequest request) throws BlockException, IOException, InterruptedException;
}
