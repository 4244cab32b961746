// SPDX-License-Identifier: Apache-2.0
//! GIST messages (RFC 5971).
