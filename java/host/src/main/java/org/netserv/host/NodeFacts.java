// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.netserv.block.NodeInfo;

/** What modules are told of their node. */
record NodeFacts(String id, String place, Map<String, String> facts, List<InetAddress> addresses) implements NodeInfo {
    /** What a module is told that runs without a node, or whose node says nothing. */
    static final NodeFacts NONE = new NodeFacts("", "", Map.of(), List.of());

    /** Reads what the native side hands over: facts are names and facts in turn, addresses are numbers. */
    static NodeFacts of(String id, String place, String[] facts, String[] addresses) {
        Map<String, String> byName = new TreeMap<>();
        for (int at = 0; at + 1 < facts.length; at += 2) {
            byName.put(facts[at], facts[at + 1]);
        }
        List<InetAddress> read = new ArrayList<>();
        for (String address : addresses) {
            try {
                // Of numbers nobody else is asked.
                read.add(InetAddress.getByName(address));
            } catch (UnknownHostException none) {
                throw new IllegalArgumentException("`" + address + "` is no address", none);
            }
        }
        return new NodeFacts(id, place, Map.copyOf(byName), List.copyOf(read));
    }
}
