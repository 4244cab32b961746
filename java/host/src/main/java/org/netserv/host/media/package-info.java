// SPDX-License-Identifier: Apache-2.0
/** The block {@code media}: jobs that the native side asks the node for. */
package org.netserv.host.media;
