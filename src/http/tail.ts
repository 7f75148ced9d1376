/** The last `size` bytes of a stream, in one buffer: a chunk is never kept, as one of a byte takes 400. */
export class Tail {
  readonly #size: number
  /** The first chunk itself, until a second one comes: most streams are one chunk. */
  #buffer: Buffer | null = null
  /** Of all chunks. */
  #length = 0

  constructor(size: number) {
    this.#size = size
  }

  /** By how many bytes the buffer grows if a chunk of this length is added. */
  growth(length: number): number {
    const room = this.#buffer?.length ?? 0
    const needed = Math.min(this.#size, this.#length + length)
    if (needed <= room) return 0
    return (room === 0 ? needed : Math.min(this.#size, Math.max(needed, 2 * room))) - room
  }

  add(chunk: Buffer): void {
    if (chunk.length === 0) return
    if (this.#buffer === null && chunk.length <= this.#size) this.#buffer = chunk
    else {
      const growth = this.growth(chunk.length)
      if (growth > 0) this.#grow(growth)
      this.#write(this.#buffer!, chunk)
    }
    this.#length += chunk.length
  }

  isCut(): boolean {
    return this.#length > this.#size
  }

  bytes(): Buffer {
    const buffer = this.#buffer ?? Buffer.alloc(0)
    if (!this.isCut()) return this.#length === buffer.length ? buffer : buffer.subarray(0, this.#length)
    const oldest = this.#length % this.#size
    return Buffer.concat([buffer.subarray(oldest), buffer.subarray(0, oldest)])
  }

  /** A buffer that is too small has not been full before: its bytes are in their order. */
  #grow(growth: number): void {
    const before = this.#buffer
    this.#buffer = Buffer.allocUnsafe((before?.length ?? 0) + growth)
    before?.copy(this.#buffer, 0, 0, this.#length)
  }

  #write(buffer: Buffer, chunk: Buffer): void {
    const skipped = Math.max(0, chunk.length - buffer.length)
    const at = (this.#length + skipped) % this.#size
    const written = chunk.copy(buffer, at, skipped)
    chunk.copy(buffer, 0, skipped + written)
  }
}
