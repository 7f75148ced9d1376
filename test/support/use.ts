import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'

/**
 * What the tests of a file share: made before the first of them, and ended after the last where it can be. It is empty
 * until then.
 */
export function use<T extends object>(make: () => Promise<T>): T {
  const shared = {} as T & Partial<AsyncDisposable>
  beforeAll(async () => fill(shared, await make()))
  afterAll(() => shared[Symbol.asyncDispose]?.())
  return shared
}

/** What each test has anew: made before it, and ended after it where it can be. */
export function useEach<T extends object>(make: () => Promise<T> | T): T {
  const own = {} as T & Partial<AsyncDisposable>
  beforeEach(async () => {
    for (const key of Reflect.ownKeys(own)) Reflect.deleteProperty(own, key)
    fill(own, await make())
  })
  afterEach(() => own[Symbol.asyncDispose]?.())
  return own
}

function fill(shared: object, made: object): void {
  Object.defineProperties(shared, Object.getOwnPropertyDescriptors(made))
}
