// SPDX-License-Identifier: Apache-2.0
/** Packets: how a bundle sees them, what it may do with them, and how it makes new ones. */
@Export
@Version("1.0.0")
package org.netserv.packet;

import org.osgi.annotation.bundle.Export;
import org.osgi.annotation.versioning.Version;
