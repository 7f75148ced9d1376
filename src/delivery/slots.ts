/**
 * How many deliveries one channel may have on the way at once. A receiver that answers gets more, one that does not gets a
 * single one until it does: so a dead receiver holds one connection, however much waits for it, and delays nobody else.
 */

export interface Slots {
  free(channelId: string): number
  /** Nothing is on the way. */
  isIdle(channelId: string): boolean
  take(channelId: string): void
  /** `isWell`: the receiver took what it was sent; null says nothing about it. */
  giveBack(channelId: string, isWell: boolean | null): void
}

interface Place {
  used: number
  width: number
}

export const MOST_SLOTS = 16
/** Channels; more than that, and all that have nothing on the way begin anew. Some of them are gone by then. */
const REMEMBERED = 1_000
/** Of a channel that was not tried yet. */
const FIRST_WIDTH = 4

export function createSlots(most = MOST_SLOTS): Slots {
  const places = new Map<string, Place>()
  const placeOf = (channelId: string) => places.get(channelId) ?? { used: 0, width: Math.min(FIRST_WIDTH, most) }
  return {
    free(channelId) {
      const { used, width } = placeOf(channelId)
      return Math.max(0, width - used)
    },
    isIdle: (channelId) => placeOf(channelId).used === 0,
    take(channelId) {
      const place = placeOf(channelId)
      place.used += 1
      places.set(channelId, place)
    },
    giveBack(channelId, isWell) {
      const place = placeOf(channelId)
      place.used -= 1
      if (isWell !== null) place.width = isWell ? Math.min(most, place.width * 2) : 1
      places.set(channelId, place)
      if (places.size > REMEMBERED) for (const [id, { used }] of places) if (used === 0) places.delete(id)
    },
  }
}
