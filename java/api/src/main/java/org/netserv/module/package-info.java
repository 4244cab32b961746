// SPDX-License-Identifier: Apache-2.0
/** What a bundle knows about itself as a module of a node. */
@Export
@Version("1.0.0")
package org.netserv.module;

import org.osgi.annotation.bundle.Export;
import org.osgi.annotation.versioning.Version;
