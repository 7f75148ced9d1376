import { readText } from './documents.ts'

/** The variables that the image sets: the instructions ENV of its last stage. */
export function readImageEnvironment(containerfile = readText('Containerfile')): Record<string, string> {
  const stage = containerfile.slice(containerfile.lastIndexOf('\nFROM '))
  const pairs = [...stage.matchAll(/^ENV (.+)$/gm)].flatMap(([, line]) => line!.split(' '))
  return Object.fromEntries(pairs.map((pair) => pair.split(/=(.*)/s, 2)))
}
