/**
 * The reasons of the conditions: part of the API of HeartbeatCheck, as programs and alerts read them. The description
 * of the definition lists them. New ones may be added, none changes its meaning.
 */

/** What a person has to correct first: `Ready` is False, `Stalled` True, both with the reason. */
export const STALLED_REASONS = [
  'InvalidSpec',
  'ProjectNotAllowed',
  'ProjectNotFound',
  'AdoptionRefused',
  'RetainedCheckExists',
  'ManagedElsewhere',
  'TargetNotOwned',
  'PublishRefused',
  'SourceNotFound',
  'SourceForbidden',
] as const
export type StalledReason = (typeof STALLED_REASONS)[number]

/** By the type of the condition. */
export const REASONS = {
  /** Uninstalled: the command `release` wrote it, and no operator reconciles the resource. */
  Ready: ['Synced', 'ProgressingWithRetry', 'Uninstalled', ...STALLED_REASONS],
  Reconciling: ['ProgressingWithRetry'],
  Stalled: STALLED_REASONS,
  Published: ['Published', 'NotPublishedYet', ...STALLED_REASONS],
  /** Only of a resource that depends on others. */
  DependenciesResolved: ['Resolved', 'NotFound', 'Ring'],
  Up: ['OnTime', 'Late', 'Missed', 'JobFailed', 'Overran', 'New', 'Suspended'],
} as const satisfies Record<string, readonly string[]>

export type ConditionType = keyof typeof REASONS

export const DESCRIPTION = [
  'The reason in one word, for programs; further values may be added. Ready: Synced, ProgressingWithRetry, Uninstalled, or as Stalled',
  `Reconciling: ${REASONS.Reconciling.join(', ')}`,
  `Stalled: ${STALLED_REASONS.join(', ')}`,
  `Published: Published, NotPublishedYet, or as Stalled`,
  `DependenciesResolved: ${REASONS.DependenciesResolved.join(', ')}`,
  `Up: ${REASONS.Up.join(', ')}.`,
].join('; ')
