/**
 * How many deliveries of one channel may run at the same time: more while a receiver accepts, one from a failure until it accepts again. So a
 * dead receiver holds one connection, however many deliveries wait for it, and delays no other channel.
 */

interface Slot {
  used: number
  width: number
}

export const MAX_SLOTS = 16
/** Channels in memory. Beyond that, the state of idle channels is dropped, of removed ones too. */
const MAX_CHANNELS = 1_000
/** Slots of a channel before its first attempt. */
const FIRST_WIDTH = 4

export function createSlots(max = MAX_SLOTS) {
  const channels = new Map<string, Slot>()
  const slotOf = (channelId: string) => channels.get(channelId) ?? { used: 0, width: Math.min(FIRST_WIDTH, max) }
  return {
    /** Free slots of the channel. */
    free(channelId: string): number {
      const { used, width } = slotOf(channelId)
      return Math.max(0, width - used)
    },
    /** Whether no delivery of the channel is running. */
    isIdle: (channelId: string) => slotOf(channelId).used === 0,
    acquire(channelId: string): void {
      const slot = slotOf(channelId)
      slot.used += 1
      channels.set(channelId, slot)
    },
    /** `isWell`: whether the receiver accepted; null when the attempt does not show it. */
    release(channelId: string, isWell: boolean | null): void {
      const slot = slotOf(channelId)
      slot.used -= 1
      if (isWell !== null) slot.width = isWell ? Math.min(max, slot.width * 2) : 1
      channels.set(channelId, slot)
      if (channels.size > MAX_CHANNELS) for (const [id, { used }] of channels) if (used === 0) channels.delete(id)
    },
  }
}
