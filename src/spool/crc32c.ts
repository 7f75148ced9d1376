/** CRC-32C (Castagnoli, RFC 3720). Node's `zlib.crc32` is another polynomial; the packages are [compared](README.md). */

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1
  return crc
})

/** Of `bytes`, or of more bytes: `before` is the sum of those that precede them. */
export function crc32c(bytes: Uint8Array, before = 0): number {
  let crc = ~before
  for (let at = 0; at < bytes.length; at += 1) crc = TABLE[(crc ^ bytes[at]!) & 0xff]! ^ (crc >>> 8)
  return ~crc >>> 0
}
