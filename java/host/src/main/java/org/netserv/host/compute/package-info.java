// SPDX-License-Identifier: Apache-2.0
/** Building blocks that only compute: they need nothing of the node, and cost nothing before a module asks for them. */
package org.netserv.host.compute;
