/**
 * What comments cite exists: sections of docs/internals/design.md, docs/reference/interface.md and published standards, and files of this
 * repository. A name of a test has no code of a list that is not here.
 */

import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { CHECKOUT, listFiles, listHeadings, readText } from '../../support/documents.ts'

const FILES = ['src', 'test', 'tools'].flatMap(listFiles)
const CODE = FILES.filter((path) => /\.(ts|sql)$/.test(path) && !path.includes('unit/docs/'))

/** Each numbered section with the headings below it, itself included. */
function listSections(document: string): Map<string, string[]> {
  const sections = new Map<string, string[]>()
  let chapter: string[] = []
  for (const heading of listHeadings(readText(document))) {
    const number = /^(\d+(?:\.\d+)?)\.? /.exec(heading)?.[1]
    if (number !== undefined && !number.includes('.')) chapter = []
    chapter.push(heading)
    if (number !== undefined) sections.set(number, number.includes('.') ? [heading] : chapter)
  }
  return sections
}

const SECTIONS = {
  design: listSections('docs/internals/design.md'),
  interface: listSections('docs/reference/interface.md'),
}

/** Matches "(design, section 4)", "design, sections 3.4 and 12", 'interface (section 8)', and a name: `section 4, "Own downtime"`. */
const CITATION = /\b(design|interface),? \(?sections? (\d+(?:\.\d+)?(?:(?:, | and )\d+(?:\.\d+)?)*)(?:, "([^"]+)")?/gi

function findBrokenCitations(code: string): string[] {
  const text = code.replace(/\s*\n\s*(?:\*|\/\/|--)?\s*/g, ' ')
  return [...text.matchAll(CITATION)]
    .filter(([, document, numbers, name]) => {
      const sections = SECTIONS[document!.toLowerCase() as keyof typeof SECTIONS]
      const cited = numbers!.split(/, | and /).map((number) => sections.get(number))
      return cited.some((headings) => headings === undefined || (name !== undefined && !headings.includes(name)))
    })
    .map(([citation]) => citation)
}

/** `X, section 3` of a document that is not here. */
function findUnknownDocuments(code: string): string[] {
  const text = code.replace(/\s*\n\s*(?:\*|\/\/|--)?\s*/g, ' ')
  const cited = text.matchAll(/((?:[\w.-]+ )?[\w-]+(?:\.[\w-]+)*),? \(?sections? \d/gi)
  return [...cited].map(([, document]) => document!).filter((document) => !KNOWN.test(document))
}

/** With the word before. */
const KNOWN = /^(?:(?!dashboard )\w+ )?(?:design|interface|md)$|^RFC \d+$|^(?:Core|Discovery) 1\.0$|^SP 800-38D$/i

/** `(notes, X1)`, and names of tests that begin with `X1: `. */
const CODE_OF_A_LIST = /\(notes, [A-Z]\d+\)|(?<=\(['"`])(?:[A-Z]\d{1,2}, )*[A-Z]\d{1,2}: /g
/** Tests of the operator still have such names. */
const WITH_CODES = /^test\/(?:operator|cluster|chart|unit\/operator|unit\/kubernetes|db\/operator)\//

function listComments(code: string): string[] {
  return [...code.matchAll(/\/\*.*?\*\/|(?<=^|\s)\/\/ .*?$|^\s*-- .*?$/gms)].map(([comment]) => comment)
}

/** Paths in comments that do not exist: below the root, src/ or test/, or (a bare name) in the same top folder, such as src/store/. */
function findMissingFiles(path: string, code: string): string[] {
  const named = listComments(code).flatMap((comment) => [
    ...comment.matchAll(/(?<![\w/.*:<-])((?:[\w-]+\/)*[\w.-]+\.(?:ts|md|sql|yaml|mjs))\b(?![/*])/g),
  ])
  const roots = ['', 'src', 'test', 'tools', 'charts/heartbeat-operator', dirname(path)]
  const near = FILES.filter((file) => file.startsWith(`${path.split('/').slice(0, 2).join('/')}/`))
  return named
    .map(([, file]) => file!)
    .filter((file) => !file.endsWith('/x.test.ts')) // stands for any test
    .filter((file) => !roots.some((root) => existsSync(join(CHECKOUT, root, file))))
    .filter((file) => file.includes('/') || !near.some((other) => other.endsWith(`/${file}`)))
}

describe('comments', () => {
  it('cite only sections that docs/internals/design.md and docs/reference/interface.md have', () => {
    const broken = CODE.flatMap((path) => findBrokenCitations(readText(path)).map((citation) => `${path}: ${citation}`))
    expect(broken).toEqual([])
  })

  it('cite no other document of ours, and no code of a list', () => {
    const unknown = CODE.flatMap((path) => findUnknownDocuments(readText(path)).map((name) => `${path}: ${name}`))
    const codes = CODE.filter((path) => !WITH_CODES.test(path)).flatMap((path) =>
      [...readText(path).matchAll(CODE_OF_A_LIST)].map(([code]) => `${path}: ${code}`),
    )
    expect([...unknown, ...codes]).toEqual([])
  })

  it.each([['(dashboard design, section 3)'], ['clients, section 4: a client'], ['(design-cronjobs,\n * section 5)']])(
    'with the unknown document in %j are found',
    (comment) => expect(findUnknownDocuments(`/** ${comment} */`)).toHaveLength(1),
  )

  it('cite the design in many places, and the pattern finds them', () => {
    const count = CODE.flatMap((path) => [...readText(path).matchAll(CITATION)]).length
    expect(count).toBeGreaterThan(50)
  })

  it('name only files that exist', () => {
    const missing = CODE.flatMap((path) => findMissingFiles(path, readText(path)).map((file) => `${path}: ${file}`))
    expect(missing).toEqual([])
  })

  it.each([
    ['(design, section 99)', 'design, section 99'],
    ['(design, sections 3.4 and 99)', 'design, sections 3.4 and 99'],
    ['(design,\n * section 99)', 'design, section 99'],
    ['(design, section 4, "No such heading")', 'design, section 4, "No such heading"'],
    ['(interface, section 4.3; design, section 3.3)', 'interface, section 4.3'],
    ['of the interface (section 80)', 'interface (section 80'],
  ])('with the broken reference %s are found', (comment, citation) => {
    expect(findBrokenCitations(`/** ${comment} */`)).toEqual([citation])
  })

  it.each([['/** See docs/missing.md. */'], ['// see missing.ts'], ['/**\n * store/missing.ts does it.\n */']])(
    'with the missing file in %j are found',
    (comment) => {
      expect(findMissingFiles('src/app.ts', `${comment}\nconst x = 1`)).toHaveLength(1)
    },
  )
})
