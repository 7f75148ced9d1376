/** The documents as tests see them: headings, links, and the blocks of commands with the marker that says who runs them. */

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const CHECKOUT = fileURLToPath(new URL('../..', import.meta.url))

/** Paths from the root of the repository. */
export const DOCUMENTS: readonly string[] = [
  ...listTopLevel().filter((path) => path.endsWith('.md')),
  'src/README.md',
  'charts/heartbeat-operator/README.md',
  'manifests/README.md',
  'tools/programs/README.md',
  ...listFiles('docs').filter((path) => path.endsWith('.md')),
]

/** The files of the root folder. */
function listTopLevel(): string[] {
  const entries = readdirSync(CHECKOUT, { withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name)
}

/** All files below a folder, as paths from the root of the repository. */
export function listFiles(folder: string): string[] {
  return readdirSync(join(CHECKOUT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(CHECKOUT.length))
    .sort()
}

export const readText = (path: string): string => readFileSync(join(CHECKOUT, path), 'utf8')

/** A fenced block. */
export interface Block {
  readonly document: string
  readonly line: number
  readonly language: string
  readonly text: string
  /** The comment on the line above, such as `untested: needs a cluster`; null without one. */
  readonly marker: string | null
}

export function listBlocks(document: string, text = readText(document)): Block[] {
  const fenced = /^(?:<!-- (.+?) -->\n)?```(\w*)\n(.*?)^```$/gms
  return [...text.matchAll(fenced)].map(({ 1: marker = null, 2: language, 3: commands, index }) => ({
    document,
    line: text.slice(0, index).split('\n').length,
    language: language!,
    text: commands!,
    marker,
  }))
}

/** The blocks that are marked `test: <path of a test>`, in the order of the documents. Throws when there is none. */
export function listBlocksOf(test: string): Block[] {
  const found = DOCUMENTS.flatMap((document) => listBlocks(document)).filter(({ marker }) => marker === `test: ${test}`)
  if (found.length === 0) throw new Error(`no document has a block that is marked <!-- test: ${test} -->`)
  return found
}

/** The texts of all headings. */
export function listHeadings(text: string): string[] {
  return [...withoutBlocks(text).matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading!)
}

/** The anchors that GitHub makes of the headings. */
export function listAnchors(text: string): string[] {
  return listHeadings(text).map((heading) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  )
}

/** Links to files and headings of this repository that do not exist, as `document: link`. */
export function findBrokenLinks(document: string, text = readText(document)): string[] {
  const links = [...withoutBlocks(text).matchAll(/\]\(([^()\s]+)\)/g)].map(([, link]) => link!)
  return links.filter((link) => !isLinkWhole(document, link)).map((link) => `${document}: ${link}`)
}

function isLinkWhole(document: string, link: string): boolean {
  if (/^[a-z]+:/.test(link)) return true
  const [path = '', anchor] = link.split('#')
  const file = path === '' ? document : join(dirname(document), path)
  if (!existsSync(join(CHECKOUT, file))) return false
  return anchor === undefined || listAnchors(readText(file)).includes(anchor)
}

function withoutBlocks(text: string): string {
  return text.replace(/^```.*?^```$/gms, '')
}
