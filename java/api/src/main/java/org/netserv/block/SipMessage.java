// SPDX-License-Identifier: Apache-2.0
package org.netserv.block;

import org.netserv.packet.PacketView;
import org.osgi.annotation.versioning.ProviderType;

/**
 * A SIP message that is taken apart. It holds places in the text, not copies: of an array until the array changes, of a
 * packet until the next {@code parse}. Used by one thread at a time. What returns a {@link String} allocates it,
 * nothing else allocates anything.
 *
 * <p>Offsets are from where the text begins. The methods other than {@code parse} and {@code errorReason} may be called
 * only after a {@code parse} that returned true; else they throw {@link IllegalStateException}.
 */
@ProviderType
public interface SipMessage {
    /**
     * Takes a message apart.
     *
     * @param text where it is
     * @param start where it begins
     * @param length its bytes, at most {@link Sip#MESSAGE_BYTES_MAX}
     * @return whether it is a SIP message
     * @throws IndexOutOfBoundsException beyond the array
     */
    boolean parse(byte[] text, int start, int length);

    /**
     * Takes a message in a packet apart.
     *
     * @param packet where it is
     * @param start where it begins, for instance {@code IpView.payloadOffset()}
     * @param length its bytes
     * @return whether it is a SIP message
     * @throws IndexOutOfBoundsException beyond the packet
     */
    boolean parse(PacketView packet, int start, int length);

    /**
     * Returns why a text is no SIP message.
     *
     * @return the reason, or null if it is one
     */
    String errorReason();

    /**
     * Returns whether this is a request, not a response.
     *
     * @return whether it is
     */
    boolean isRequest();

    /**
     * Returns whether this is a request of a method.
     *
     * @param method the method, for instance {@code INVITE}
     * @return whether it is
     */
    boolean isRequest(String method);

    /**
     * Returns the method of a request.
     *
     * @return the method, or null for a response
     */
    String method();

    /**
     * Returns what a request is for.
     *
     * @return the request URI, or null for a response
     */
    String uri();

    /**
     * Returns the status code of a response.
     *
     * @return 100 to 699, or 0 for a request
     */
    int status();

    /**
     * Returns the reason phrase of a response.
     *
     * @return the phrase, or null for a request
     */
    String reason();

    /**
     * Returns how many headers there are.
     *
     * @return 5 to {@link Sip#HEADERS_MAX}
     */
    int headers();

    /**
     * Returns the name of a header.
     *
     * @param index which, from 0
     * @return its long name in lower case, whichever form the message has
     * @throws IndexOutOfBoundsException if there is no such header
     */
    String headerName(int index);

    /**
     * Returns the value of a header.
     *
     * @param index which, from 0
     * @return its value, with folded lines joined
     * @throws IndexOutOfBoundsException if there is no such header
     */
    String headerValue(int index);

    /**
     * Returns where the value of a header begins.
     *
     * @param index which, from 0
     * @return the offset in the text
     * @throws IndexOutOfBoundsException if there is no such header
     */
    int valueStart(int index);

    /**
     * Returns where the value of a header ends.
     *
     * @param index which, from 0
     * @return the offset behind it; line ends are in between if the header is folded
     * @throws IndexOutOfBoundsException if there is no such header
     */
    int valueEnd(int index);

    /**
     * Looks for a header.
     *
     * @param name its name in lower case, in the long form
     * @param from where to begin, from 0
     * @return the index of the first one from there on, or -1
     */
    int find(String name, int from);

    /**
     * Returns the value of the first header of a name.
     *
     * @param name its name in lower case, in the long form
     * @return the value, or null if there is none
     */
    default String header(String name) {
        int index = find(name, 0);
        return index < 0 ? null : headerValue(index);
    }

    /**
     * Returns whether there is a header with a value, up to its parameters, as {@code event} with {@code keep-alive}.
     *
     * @param name the header's name in lower case, in the long form
     * @param value the value in ASCII, whose case does not count
     * @return whether there is
     */
    boolean matches(String name, String value);

    /**
     * Returns whether a header of a name contains a text.
     *
     * @param name the header's name in lower case, in the long form
     * @param text the text in ASCII, whose case does not count
     * @return whether one does
     */
    boolean contains(String name, String text);

    /**
     * Returns the URI of the From, without display name and angle brackets.
     *
     * @return the URI
     */
    String fromUri();

    /**
     * Returns the URI of the To, without display name and angle brackets.
     *
     * @return the URI
     */
    String toUri();

    /**
     * Returns the host of the topmost Via, with its port if it has one.
     *
     * @return the host
     */
    String sentBy();

    /**
     * Returns what names the call.
     *
     * @return the Call-ID
     */
    String callId();

    /**
     * Returns the number of the CSeq.
     *
     * @return 0 to 2,147,483,647
     */
    long cseqNumber();

    /**
     * Returns the method of the CSeq.
     *
     * @return the method
     */
    String cseqMethod();

    /**
     * Returns the tag of the From.
     *
     * @return the tag, empty if there is none
     */
    String fromTag();

    /**
     * Returns the tag of the To.
     *
     * @return the tag, empty if there is none
     */
    String toTag();

    /**
     * Returns the branch of the topmost Via.
     *
     * @return the branch, empty if there is none
     */
    String branch();

    /**
     * Returns where the body begins.
     *
     * @return the offset in the text
     */
    int bodyStart();

    /**
     * Returns how long the body is.
     *
     * @return bytes
     */
    int bodyLength();
}
