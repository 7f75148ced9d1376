import type { Parts } from '../checks/parts.ts'
import type { Sealer } from './seal.ts'

/** What the verbs of this folder work with. */
export interface ChannelParts extends Parts {
  readonly sealer: Sealer
}
