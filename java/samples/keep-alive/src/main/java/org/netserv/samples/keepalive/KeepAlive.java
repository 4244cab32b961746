// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.keepalive;

import org.netserv.block.BlockException;
import org.netserv.block.Counter;
import org.netserv.module.ModuleContext;
import org.netserv.packet.IpView;
import org.netserv.packet.PacketProcessor;
import org.netserv.packet.PacketView;
import org.netserv.packet.UdpWriter;

/**
 * Answers SIP keep-alives in the place of the server, close to the phones that send them (2011 paper, §6.2).
 *
 * <p>It answers over UDP, with the server's address as source:
 *
 * <ul>
 *   <li>NOTIFY with {@code Event: keep-alive}, with 200;
 *   <li>OPTIONS outside a dialog whose request URI names no user, with 200 (property {@code options}, {@code on} by
 *       default);
 *   <li>a double CRLF with a single one (RFC 5626 §3.5.1). A single CRLF asks for no answer and is dropped.
 * </ul>
 *
 * <p>The original goes no further. Everything else, whatever is wrong with it, passes untouched. The filter has to name
 * the server as destination ({@code udp dst 192.0.2.7 port 5060}), since OPTIONS toward phones are the server's own.
 *
 * <p>The answer goes to where RFC 3261 §18.2.2 and RFC 3581 say: to the port of the topmost Via, or to the port that
 * the request came from if the Via has {@code rport} or the property {@code force-rport} is {@code on}.
 */
final class KeepAlive implements PacketProcessor {
    private static final byte[] CRLF = Ascii.bytes("\r\n");
    private static final int CRLF_WORD = 0x0d0a;
    private static final int CRLF_CRLF_WORD = 0x0d0a0d0a;
    /** {@code NOTI} and {@code IFY }, which share a letter. */
    private static final int NOTIFY_START = 0x4e4f5449;
    private static final int NOTIFY_END = 0x49465920;
    /** {@code OPTIONS } in full. */
    private static final long OPTIONS = 0x4f5054494f4e5320L;

    private final boolean answersOptions;
    private final boolean forcesRport;
    private final long secret;
    private final Counter notify;
    private final Counter options;
    private final Counter crlf;
    private final Counter notUnderstood;

    private final IpView ip = new IpView();
    private final byte[] payload = new byte[PacketView.LENGTH_MAX];
    private final SipRequest request = new SipRequest();
    private final Address source = new Address();
    /** Where responses are put together. */
    private final TextWriter response = new TextWriter(PacketView.LENGTH_MAX);

    /**
     * Gets ready.
     *
     * @throws BlockException if there are too few counters
     * @throws IllegalArgumentException for a property that is not understood
     */
    KeepAlive(ModuleContext module) throws BlockException {
        answersOptions = isOn(module, "options", true);
        forcesRport = isOn(module, "force-rport", false);
        secret = module.randomNumber();
        notify = module.counters().open("notify");
        options = module.counters().open("options");
        crlf = module.counters().open("crlf");
        notUnderstood = module.counters().open("not-understood");
    }

    @Override
    public void process(PacketView packet) {
        if (!ip.parse(packet) || !ip.isUdp()) {
            return;
        }
        int start = ip.payloadOffset();
        int length = ip.payloadLength();
        if (length == 4 && packet.getInt(start) == CRLF_CRLF_WORD) {
            answer(packet, ip.sourcePort(), CRLF, CRLF.length, crlf);
        } else if (length == 2 && packet.getU16(start) == CRLF_WORD) {
            crlf.add(1);
            packet.drop();
        } else if (isNotify(packet, start, length)) {
            answerRequest(packet, start, length, true);
        } else if (answersOptions && length >= Long.BYTES && packet.getLong(start) == OPTIONS) {
            answerRequest(packet, start, length, false);
        }
    }

    private static boolean isNotify(PacketView packet, int start, int length) {
        return length >= 7 && packet.getInt(start) == NOTIFY_START && packet.getInt(start + 3) == NOTIFY_END;
    }

    private void answerRequest(PacketView packet, int start, int length, boolean isNotify) {
        packet.get(start, payload, 0, length);
        if (!request.parse(payload, length)) {
            notUnderstood.add(1);
            return;
        }
        if (!(isNotify ? request.isKeepAliveNotify() : request.isPing())) {
            return;
        }
        source.set(ip.version() == 6, ip.sourceHigh(), ip.sourceLow(), ip.sourcePort());
        response.clear();
        int port = request.writeOk(source, forcesRport, secret, response);
        if (port != 0 && !response.isCut()) {
            answer(packet, port, response.bytes(), response.length(), isNotify ? notify : options);
        }
    }

    /** Puts an answer in the place of the packet. */
    private void answer(PacketView packet, int port, byte[] text, int length, Counter counter) {
        if (UdpWriter.answer(packet, ip, port, text, 0, length)) {
            counter.add(1);
            packet.modified();
        }
    }

    private static boolean isOn(ModuleContext module, String key, boolean otherwise) {
        String text = module.property(key, otherwise ? "on" : "off");
        return switch (text) {
            case "on" -> true;
            case "off" -> false;
            default -> throw new IllegalArgumentException(
                    "property `" + key + "` is `" + text + "`; write `on` or `off`");
        };
    }
}
