/** An area is what one watch of a source covers: a cluster, or a namespace of it. Names of clusters and namespaces have no slash. */

/** The area of a watch of this namespace; null: of the whole cluster. */
export function areaOf(cluster: string, namespace: string | null): string {
  return namespace === null ? cluster : `${cluster}/${namespace}`
}
