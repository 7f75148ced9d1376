import type { Context } from '../store/context.ts'
import type { Sealer } from './seal.ts'

/** What the verbs of this folder work with. */
export interface ChannelContext extends Context {
  readonly sealer: Sealer
  readonly reach: Reach
}

/** What this installation can send to. */
export interface Reach {
  /** Why channels may not reach this address, with the setting that can allow it; null when they may. */
  findObjection(address: string): string | null
  /** SMTP_URL is set. */
  readonly hasSmtp: boolean
}
