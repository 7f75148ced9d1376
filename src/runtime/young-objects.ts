/** How V8 collects the objects of requests. */

import { setFlagsFromString } from 'node:v8'

/**
 * Has V8 allocate all objects as young objects. At a service that starts under load V8 would allocate the objects of
 * pings as old ones: each would keep its whole request until the next full collection (docs/internals/benchmarks.md).
 */
export function allocateYoungObjects(): void {
  setFlagsFromString('--no-allocation-site-pretenuring')
}
