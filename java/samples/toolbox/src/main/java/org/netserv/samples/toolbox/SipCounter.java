// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.toolbox;

import java.nio.charset.StandardCharsets;
import java.util.List;
import org.netserv.block.BlockException;
import org.netserv.block.Counter;
import org.netserv.block.Counters;
import org.netserv.block.Search;
import org.netserv.block.Sip;
import org.netserv.block.SipMessage;
import org.netserv.packet.IpView;
import org.netserv.packet.PacketProcessor;
import org.netserv.packet.PacketView;

/** Counts SIP messages, and payloads that say that they are keep-alives; allocates nothing. */
final class SipCounter implements PacketProcessor {
    private final IpView ip = new IpView();
    private final SipMessage message;
    private final Search.Patterns patterns;
    private final Counter messages;
    private final Counter keepAlives;

    SipCounter(Blocks blocks) throws BlockException {
        message = blocks.get(Sip.class).message();
        List<byte[]> words = List.of(bytes("keep-alive"), bytes("OPTIONS sip:"));
        patterns = blocks.get(Search.class).compile(words, true);
        Counters counters = blocks.module().counters();
        messages = counters.open("sip");
        keepAlives = counters.open("keep-alive");
    }

    @Override
    public void process(PacketView packet) {
        if (!ip.parse(packet) || !ip.isUdp()) {
            return;
        }
        int start = ip.payloadOffset();
        if (message.parse(packet, start, ip.payloadLength())) {
            messages.add(1);
        }
        if (patterns.find(packet, start, start + ip.payloadLength())) {
            keepAlives.add(1);
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }
}
