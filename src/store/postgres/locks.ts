/** All advisory lock numbers of this program, so that no two purposes share one: "heart" in ASCII, then a counter. */

const BASE = 0x68656172 * 100

export const MIGRATION_LOCK = BASE + 1
export const BOOTSTRAP_LOCK = BASE + 2
export const PRUNE_LOCK = BASE + 3

/**
 * The first of two numbers, a separate space. The second is a hash of the resource whose check, channel or silence is
 * declared or retired.
 */
export const RESOURCE_LOCKS = 0x68656172
/** The second is a hash of the organization in which the dependencies of a check change. */
export const DEPENDENCY_LOCKS = RESOURCE_LOCKS + 1
