/** The HeartbeatSilence as a kind: its silence in the service. */

import { describeError } from '../../domain/errors.ts'
import { earliest } from '../../domain/instant.ts'
import type { DeclaredSilence, SilenceChange } from '../../silences/declare-silence.ts'
import { HEARTBEAT_SILENCES, SILENCE_KIND } from '../names.ts'
import type { DeclaredKind } from '../resource/declared-kind.ts'
import { StalledResource } from '../resource/stalled.ts'
import { type HeartbeatSilence, readSilence, type SilenceStalledReason } from '../schema/silence.ts'
import type { Term } from '../term.ts'
import { describeSilence } from './silence-status.ts'

class StalledSilence extends StalledResource<SilenceStalledReason> {}

const CHANGES: Record<Exclude<SilenceChange, 'unchanged'>, { readonly reason: string; readonly note: string }> = {
  created: { reason: 'Created', note: 'while the silence holds, no channel is notified of the checks that it covers' },
  updated: { reason: 'Updated', note: 'the service holds the new specification' },
}

export function silenceKind({
  service,
  cluster,
}: Pick<Term, 'service' | 'cluster'>): DeclaredKind<HeartbeatSilence, DeclaredSilence> {
  return {
    kind: SILENCE_KIND,
    type: HEARTBEAT_SILENCES,
    what: 'silence',
    controller: 'heartbeat-silences',
    synced: 'the service holds this specification',
    idOf: ({ silenceId }) => silenceId,
    async declare(object, resource, project) {
      const read = readSilence(object)
      if ('faults' in read) throw new StalledSilence('InvalidSpec', read.faults.join('; '))
      const { silence, change } = await service.declareSilence({ resource, project, ...read })
      return { facts: silence, news: change === 'unchanged' ? null : CHANGES[change] }
    },
    toStalled(error) {
      if (error.code === 'conflict') return new StalledSilence('SilenceRefused', error.message)
      if (error.code !== 'invalid_request') return null
      return new StalledSilence('InvalidSpec', describeError(error, (field) => `spec.${field}`).text)
    },
    find: (_, resource) => service.findSilence(resource),
    describe: (_, silence) => describeSilence(silence),
    // A window may begin while the window before it holds.
    changesAt: ({ activeUntil, nextStartsAt }) => earliest(activeUntil, nextStartsAt),
    async list() {
      const found = await service.listSilences(cluster)
      return found.map((one) => ({ ...one, isShown: ({ status }) => status?.silenceId === one.silenceId }))
    },
    retire: (place, other) => service.retireSilence(place, other),
  }
}
