// SPDX-License-Identifier: Apache-2.0
package org.netserv.block;

import java.net.InetAddress;
import java.util.List;
import java.util.Map;
import org.osgi.annotation.versioning.ProviderType;

/**
 * The node that the module runs on: its name, what its operator wrote in {@code [about]} of {@code netservd.toml}, and
 * the addresses of the module's container. A service. It stays the same for as long as a bundle is loaded. Texts are
 * empty, and there are no facts, where the operator says nothing and where a module runs without a node. May be used on
 * any thread.
 *
 * <pre>{@code
 * NodeInfo node = context.getService(context.getServiceReference(NodeInfo.class));
 * int oneIn = "100G".equals(node.fact("uplink")) ? 1000 : 10;
 * log.info("on " + node.id() + " in " + node.place() + ", one packet of " + oneIn);
 * for (InetAddress address : node.addresses()) {
 *     log.info("the container is " + address.getHostAddress());
 * }
 * }</pre>
 */
@ProviderType
public interface NodeInfo {
    /**
     * Returns the node's name.
     *
     * @return 1 to 64 characters
     */
    String id();

    /**
     * Returns where the node is.
     *
     * @return at most 128 characters
     */
    String place();

    /**
     * Returns what else the operator says, by name.
     *
     * @return at most 32 facts of at most 256 characters, which cannot be changed
     */
    Map<String, String> facts();

    /**
     * Returns one fact.
     *
     * @param name its name
     * @return the fact, or null if the operator says nothing of it
     */
    default String fact(String name) {
        return facts().get(name);
    }

    /**
     * Returns the addresses of the module's container, IPv4 and IPv6.
     *
     * @return the addresses; none if containers have no network
     */
    List<InetAddress> addresses();
}
