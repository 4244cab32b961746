// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.http;

import java.nio.ByteBuffer;
import org.eclipse.jetty.http.BadMessageException;
import org.eclipse.jetty.http.HttpFields;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.http.HttpStatus;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.Request;

/**
 * Refuses bodies that are too long: with 413 if the client says how long, otherwise by an exception for the servlet that
 * reads it. Felix's own property for it puts Jetty's handler for limits in the place of the one that serves servlets. Any
 * thread.
 */
final class BodyLimit implements HttpConfiguration.Customizer {
    private final long max;

    BodyLimit(long maxBytes) {
        this.max = maxBytes;
    }

    @Override
    public Request customize(Request request, HttpFields.Mutable responseHeaders) {
        if (request.getHeaders().getLongField(HttpHeader.CONTENT_LENGTH) > max) {
            throw tooLarge();
        }
        return new Counted(request, max);
    }

    private static BadMessageException tooLarge() {
        return new BadMessageException(HttpStatus.PAYLOAD_TOO_LARGE_413);
    }

    /** A request whose body fails when it turns out to be too long. */
    private static final class Counted extends Request.Wrapper {
        private long left;

        Counted(Request wrapped, long max) {
            super(wrapped);
            left = max;
        }

        @Override
        public Content.Chunk read() {
            Content.Chunk chunk = super.read();
            ByteBuffer bytes = chunk == null ? null : chunk.getByteBuffer();
            if (bytes == null) {
                return chunk;
            }
            left -= bytes.remaining();
            if (left >= 0) {
                return chunk;
            }
            chunk.release();
            BadMessageException failure = tooLarge();
            fail(failure);
            return Content.Chunk.from(failure);
        }
    }
}
