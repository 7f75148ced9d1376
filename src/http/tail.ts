/**
 * The last `size` bytes of a stream. Chunks are kept as they come until they exceed `size`; from then on their bytes are in a ring, so that a
 * stream of any length, in chunks of any size, takes `size` bytes and is copied once.
 */
export class Tail {
  readonly #size: number
  #chunks: Buffer[] = []
  #length = 0
  #ring: Buffer | null = null
  /** Where the next byte goes, which is also where the oldest one is. */
  #at = 0

  constructor(size: number) {
    this.#size = size
  }

  add(chunk: Buffer): void {
    this.#length += chunk.length
    if (this.#ring === null) this.#chunks.push(chunk)
    else this.#write(this.#ring, chunk)
    if (this.#ring === null && this.#length > this.#size) {
      this.#ring = Buffer.allocUnsafe(this.#size)
      for (const kept of this.#chunks) this.#write(this.#ring, kept)
      this.#chunks = []
    }
  }

  /** Whether bytes before the last ones were dropped. */
  isCut(): boolean {
    return this.#ring !== null
  }

  bytes(): Buffer {
    if (this.#ring !== null) return Buffer.concat([this.#ring.subarray(this.#at), this.#ring.subarray(0, this.#at)])
    return this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks, this.#length)
  }

  #write(ring: Buffer, chunk: Buffer): void {
    const part = chunk.length > ring.length ? chunk.subarray(-ring.length) : chunk
    const written = part.copy(ring, this.#at)
    part.copy(ring, 0, written)
    this.#at = (this.#at + part.length) % ring.length
  }
}
