import type { Context } from '../store/context.ts'
import type { Sealer } from './seal.ts'

/** What the verbs of this folder work with. */
export interface ChannelContext extends Context {
  readonly sealer: Sealer
}
