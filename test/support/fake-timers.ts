import { onTestFinished, vi } from 'vitest'

/** Until the test ends, timers go off when it says so. */
export function fakeTimers(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
}
