/** Versions as they are released: three numbers. */

const VERSION = /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)$/

export const isVersion = (text: string): boolean => VERSION.test(text)

/** Positive where `a` is the newer one. Both are versions. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((version) => version.split('.').map(Number))
  const differences = left!.map((number, index) => number - right![index]!)
  return differences.find((difference) => difference !== 0) ?? 0
}
