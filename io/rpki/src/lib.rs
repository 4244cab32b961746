// SPDX-License-Identifier: Apache-2.0
//! Which prefixes the holder of an RPKI signed checklist (RFC 9323) speaks for, and until when.
#![forbid(unsafe_code)]
