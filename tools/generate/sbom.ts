/**
 * The software bill of materials of the image, in CycloneDX. npm lists packages; we leave out those that the image has not, and add what npm
 * does not know: Node.js by the name that vulnerability databases use, and the base image. (npm's own `--omit` also leaves out packages that
 * are needed both by us and by an omitted package.)
 */

export interface Component {
  readonly 'bom-ref': string
  readonly type: string
  readonly name: string
  readonly version: string
  readonly purl: string
  readonly cpe?: string
  readonly hashes?: readonly { alg: string; content: string }[]
  readonly licenses?: readonly unknown[]
  readonly components?: readonly Component[]
}

export interface Sbom {
  readonly metadata: { readonly component: Component; readonly [field: string]: unknown }
  readonly components: readonly Component[]
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn?: readonly string[] }[]
  readonly [field: string]: unknown
}

export interface Lock {
  readonly name: string
  readonly packages: Readonly<
    Record<string, { readonly version: string; readonly dev?: boolean; readonly optional?: boolean }>
  >
}

/** The packages that contain Node.js itself, one for each platform. */
export const isNode = (name: string) => /^node(-bin)?-(linux|darwin|win)-\w+$/.test(name)

/** `listed`: what `npm sbom` returns for the whole lock. Throws when the Containerfile pins no base image. */
export function renderSbom(listed: Sbom, { name, packages }: Lock, containerfile: string): Sbom {
  const shipped = new Set(
    Object.entries(packages)
      .filter(([path, { dev, optional }]) => path !== '' && !dev && !optional)
      .map(
        ([path, { version }]) => `${path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)}@${version}`,
      ),
  )
  const node = describeNode(listed.components.filter((component) => isNode(component.name)))
  const base = describeBase(containerfile)
  const own = listed.metadata.component['bom-ref']
  const refs = new Set([own, ...shipped])
  return {
    ...listed,
    // npm calls it by its folder.
    metadata: { ...listed.metadata, component: { ...listed.metadata.component, name } },
    components: [...listed.components.filter((component) => shipped.has(component['bom-ref'])), node, base],
    dependencies: [
      ...listed.dependencies
        .filter(({ ref }) => refs.has(ref))
        .map(({ ref, dependsOn = [] }) => ({
          ref,
          dependsOn: [
            ...dependsOn.filter((other) => refs.has(other)),
            ...(ref === own ? [node['bom-ref'], base['bom-ref']] : []),
          ],
        })),
      ...[node, base].map((component) => ({ ref: component['bom-ref'], dependsOn: [] })),
    ],
  }
}

function describeNode(packages: readonly Component[]): Component {
  const versions = new Set(packages.map(({ version }) => version))
  if (versions.size !== 1) throw new Error(`the lock must name one version of Node.js, and names ${[...versions]}`)
  const [version] = versions as Set<string>
  return {
    'bom-ref': `node@${version}`,
    type: 'platform',
    name: 'node',
    version: version!,
    purl: `pkg:generic/node@${version}`,
    cpe: `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`,
    licenses: [{ license: { id: 'MIT' } }],
    components: packages,
  }
}

function describeBase(containerfile: string): Component {
  const [, repository, tag, digest] =
    /^ARG BASE_IMAGE=(\S+?):([\w.-]+)@(sha256:[0-9a-f]{64})$/m.exec(containerfile) ?? []
  if (repository === undefined) throw new Error('the Containerfile must pin BASE_IMAGE by its digest')
  const title = repository.slice(repository.lastIndexOf('/') + 1)
  return {
    'bom-ref': `${repository}@${digest}`,
    type: 'container',
    name: repository,
    version: digest!,
    purl: `pkg:oci/${title}@${encodeURIComponent(digest!)}?repository_url=${repository}&tag=${tag}`,
    hashes: [{ alg: 'SHA-256', content: digest!.slice('sha256:'.length) }],
  }
}
