/** How V8 collects the objects of requests. */

import { setFlagsFromString } from 'node:v8'

/**
 * Has V8 allocate all objects as young objects. Left alone, V8 allocates the objects of a place in the code as old
 * objects once most of the first hundred have outlived a collection, for as long as the process runs. At a service that
 * starts under load all of them have, because their pings were in flight: each old object of a ping then keeps its
 * whole request until the next full collection (docs/design/ping-path.md).
 */
export function allocateYoungObjects(): void {
  setFlagsFromString('--no-allocation-site-pretenuring')
}
