/** Calls a callback of a user. What it throws has no effect: the caller goes on when its reporter fails. */
export function callSafely(callback: (() => void) | undefined): void {
  try {
    callback?.()
  } catch {
    // There is nobody left to report it to.
  }
}
