/** The list of all checks of an organization, as the dashboard shows it: its orders, and the runs in its strips. */

/** The first is the default. */
export const SURVEY_SORTS = ['status', '-status', 'name', '-name', 'last_ping', '-last_ping', 'due', '-due'] as const
export type SurveySort = (typeof SURVEY_SORTS)[number]

/** How a run ended: its completion, the deadline that it missed, or a gap of ours that hid it. */
export const BAR_OUTCOMES = ['success', 'warn', 'fail', 'missed', 'overran', 'outage'] as const
export type BarOutcome = (typeof BAR_OUTCOMES)[number]

export interface RunBar {
  readonly outcome: BarOutcome
  /** Null: unknown, or it never ended. */
  readonly durationMs: number | null
}

/** Runs in the strip of a check. */
export const STRIP_RUNS = 30
