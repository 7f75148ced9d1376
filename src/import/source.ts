/** What a reader of another monitor's data gives to the import: checks in our terms, and what cannot become one. */

import type { Past } from '../checks/create-check.ts'
import type { CheckTexts } from '../domain/check.ts'
import { StartFault } from '../runtime/start-fault.ts'
import type { NewSilence } from '../silences/create-silence.ts'
import type { GivenSpec } from '../store/checks/columns.ts'

/** By what a later run knows the check again. */
export type Identity = { readonly publicId: string } | { readonly pushToken: string }

/** Times in which no channel is notified of the check: the fields of a silence, which are valid. */
export type SourceSilence = Pick<
  NewSilence,
  'startsAt' | 'endsAt' | 'schedule' | 'timeZone' | 'durationSeconds' | 'comment'
>

export interface SourceCheck {
  readonly kind: 'check'
  /** In the words of the source, for the table. */
  readonly name: string
  readonly identity: Identity
  readonly slug: string
  /** It has no slug in healthchecks, whose API shows it so here too. */
  readonly slugLeftEmpty?: true
  readonly texts: CheckTexts
  readonly spec: GivenSpec
  /** A completion is expected from the import on. */
  readonly armed: boolean
  readonly past: Past
  readonly silences?: readonly SourceSilence[]
  /** What of it is not imported. */
  readonly notes: readonly string[]
}

/**
 * `refused`: it should have been imported, and cannot be. `left out`: a kind of thing that is not imported. `there
 * already`: it is not imported, and was created here.
 */
export interface SourceRemainder {
  readonly kind: 'refused' | 'left out' | 'there already'
  readonly name: string
  readonly reason: string
}

export type SourceItem = SourceCheck | SourceRemainder

/** The source cannot be read; the message is for the person who runs the import, and holds no secret. */
export class SourceError extends StartFault {
  override readonly exitStatus = 1
}
