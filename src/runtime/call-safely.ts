/** Calls a callback of a user. What it throws has no effect: the caller goes on when its reporter fails. */
export function callSafely(callback: (() => void) | undefined): void {
  try {
    callback?.()
  } catch {
    // No other place takes this error.
  }
}
