// SPDX-License-Identifier: Apache-2.0
/** IP and UDP for bundles: what a packet says, and how to answer it, without allocating memory. */
@Export
@Version("1.0.0")
package org.netserv.ip;

import org.osgi.annotation.bundle.Export;
import org.osgi.annotation.versioning.Version;
