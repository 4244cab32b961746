// SPDX-License-Identifier: Apache-2.0
/** Building blocks: services of the node's that are bound to the bundle that asks for them. */
@Export
@Version("1.3.0")
package org.netserv.block;

import org.osgi.annotation.bundle.Export;
import org.osgi.annotation.versioning.Version;
