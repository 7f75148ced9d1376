import { afterAll, beforeAll, beforeEach } from 'vitest'

/** What the tests of a file share: made before the first of them, and ended after the last. It is empty until then. */
export function use<T extends AsyncDisposable>(make: () => Promise<T>): T {
  const shared = {} as T
  let made: T | undefined
  beforeAll(async () => {
    made = await make()
    Object.defineProperties(shared, Object.getOwnPropertyDescriptors(made))
  })
  afterAll(() => made?.[Symbol.asyncDispose]())
  return shared
}

/** The same for what each test has anew, which nothing ends. */
export function useEach<T extends object>(make: () => Promise<T> | T): T {
  const own = {} as T
  beforeEach(async () => {
    Object.defineProperties(own, Object.getOwnPropertyDescriptors(await make()))
  })
  return own
}
