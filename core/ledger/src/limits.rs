// SPDX-License-Identifier: Apache-2.0
//! The bounds of what is told apart.

/// Users whose usage is told apart; over it, the one that was measured longest ago, of those that the policy does not
/// know if there are any, is added to the others.
pub const USAGE_USERS_MAX: usize = 4096;
/// Modules of one user whose usage is told apart; over it, the one that was measured longest ago is in the user's sum
/// only.
pub const USAGE_MODULES_PER_USER_MAX: usize = 256;
/// Runs of modules, workers and networks of which it is known what was counted last; what further ones count is added at
/// their end.
pub const METERED_RUNS_MAX: usize = 1 << 18;
