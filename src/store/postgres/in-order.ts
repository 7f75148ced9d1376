/**
 * Waits for statements that travel together, and returns their results. The first one that fails says why. Those behind it say only that the transaction
 * has failed (25P02), and their errors may come first: a full disk would look like a fault of what was sent.
 */
export async function inOrder<const All extends readonly unknown[]>(
  statements: All,
): Promise<{ -readonly [Index in keyof All]: Awaited<All[Index]> }> {
  const results: unknown[] = []
  for (const outcome of await Promise.allSettled(statements)) {
    if (outcome.status === 'rejected') throw outcome.reason
    results.push(outcome.value)
  }
  return results as { -readonly [Index in keyof All]: Awaited<All[Index]> }
}
