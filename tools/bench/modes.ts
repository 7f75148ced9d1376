/** Ways to record a ping that are measured against each other. */
export const MODES = ['groups', 'transaction', 'constant', 'plain'] as const
export type Mode = (typeof MODES)[number]
