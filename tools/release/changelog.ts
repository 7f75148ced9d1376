/**
 * CHANGELOG.md as Keep a Changelog describes it: a section for each version, and the links of the headings at the end.
 */

const UNRELEASED = '## [Unreleased]\n'
/** Of a section: the next heading, or the links. */
const END = /^(?:## |\[[^\]]+\]: )/m
const LINK = /^\[Unreleased\]: (\S+)\/compare\/v\S+\.\.\.HEAD$/m

/** A date is `YYYY-MM-DD`. */
export interface Section {
  readonly version: string
  readonly date: string
}

/**
 * Moves what is under "Unreleased" under the heading of the version. A section of that version that is there already,
 * as that of the first release, gets the date and keeps its text. Throws where the headings or the link of "Unreleased"
 * are missing.
 */
export function moveUnreleased(changelog: string, { version, date }: Section): string {
  const [, base] = LINK.exec(changelog) ?? []
  const [before, after] = splitAt(changelog, UNRELEASED)
  if (base === undefined || before === null)
    throw new Error('CHANGELOG.md needs the heading "## [Unreleased]" and its link to .../compare/vX.Y.Z...HEAD')
  const end = END.exec(after)!.index
  const [news, older] = [after.slice(0, end).trim(), after.slice(end)]
  const prepared = new RegExp(`^## \\[${RegExp.escape(version)}\\].*\n`, 'm').exec(older)
  const heading = `## [${version}] - ${date}\n`
  const blank = news === '' ? '' : `\n${news}\n`
  const moved =
    prepared === null
      ? `${heading}${blank}\n${older}`
      : older.slice(0, prepared.index) + heading + blank + older.slice(prepared.index + prepared[0].length)
  return relink(`${before}${UNRELEASED}\n${moved}`, base, version)
}

/** What the changelog says of a version, without the heading. Throws where it has no such section. */
export function readSection(changelog: string, version: string): string {
  const [before, after] = splitAt(changelog, new RegExp(`^## \\[${RegExp.escape(version)}\\].*\n`, 'm'))
  if (before === null) throw new Error(`CHANGELOG.md has no section for ${version}`)
  return after.slice(0, END.exec(after)?.index).trim()
}

function splitAt(text: string, mark: string | RegExp): [string, string] | [null, ''] {
  const found = typeof mark === 'string' ? text.indexOf(mark) : (mark.exec(text)?.index ?? -1)
  if (found === -1) return [null, '']
  return [text.slice(0, found), text.slice(text.indexOf('\n', found) + 1)]
}

function relink(changelog: string, base: string, version: string): string {
  const own = `[${version}]: `
  const previous = [...changelog.matchAll(/^\[(\d\S+)\]: /gm)].map(([, one]) => one!).find((one) => one !== version)
  const address =
    previous === undefined ? `${base}/releases/tag/v${version}` : `${base}/compare/v${previous}...v${version}`
  const without = changelog.replace(new RegExp(`^${RegExp.escape(own)}.*\n`, 'm'), '')
  return without.replace(LINK, `[Unreleased]: ${base}/compare/v${version}...HEAD\n${own}${address}`)
}
