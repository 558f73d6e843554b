/** What a memory was made from and what was made of it, as a graph from top to bottom. */

import "./lineage.css";
import { useMemo } from "preact/hooks";
import { Graph, layout } from "@dagrejs/dagre";
import { Link } from "wouter-preact";
import type { Schemas } from "../api";
import { MemoryText } from "./MemoryText";
import { Tag } from "./Tag";
import { written } from "./seen";

const WIDTH = 216;
const HEIGHT = 76;

export function Lineage({ found }: { found: Schemas["Lineage"] }) {
  const drawn = useMemo(() => laidOut(found), [found]);
  if (found.memories.length < 2) return <p class="soft">It was made from no other memory, and none was made of it.</p>;
  return (
    <>
      <div class="lineage" role="group" aria-label="Lineage" tabIndex={0}>
        <div class="lineage-all" style={{ width: `${drawn.width}px`, height: `${drawn.height}px` }}>
          <svg width={drawn.width} height={drawn.height} aria-hidden="true">
            {drawn.edges.map((each) => (
              <path key={each.key} class={each.how} d={each.path} />
            ))}
          </svg>
          {drawn.nodes.map((each) => (
            <div
              key={each.of.id}
              class={`lineage-node ${each.of.id === found.id ? "here" : ""} ${each.of.status === "active" ? "" : "ended"}`}
              style={{ left: `${each.x - WIDTH / 2}px`, top: `${each.y - HEIGHT / 2}px` }}
            >
              <Link
                href={`/memories/${encodeURIComponent(each.of.id)}`}
                title={written(each.of.text)}
                aria-current={each.of.id === found.id ? "true" : undefined}
              >
                <MemoryText text={each.of.text} />
              </Link>
              <span class="line small">
                <Tag>{each.of.tier}</Tag>
                {each.of.status === "active" ? null : <Tag tone="bad">{each.of.status}</Tag>}
                {each.of.trust === "web" ? <Tag tone="warn">from web</Tag> : null}
              </span>
            </div>
          ))}
        </div>
      </div>
      <p class="soft small">
        Above is what it was made from, below what was made of it; a dashed line leads to what took its place.
        {found.hidden ? ` ${found.hidden} are out of your reach.` : ""}
        {found.left_out ? ` ${found.left_out} more are not drawn.` : ""}
      </p>
    </>
  );
}

function laidOut(found: Schemas["Lineage"]) {
  const graph = new Graph();
  graph.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 34, marginx: 4, marginy: 4 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const each of found.memories) graph.setNode(each.id, { width: WIDTH, height: HEIGHT });
  for (const each of found.bonds) graph.setEdge(each.before, each.after, {});
  layout(graph);
  const { width = WIDTH, height = HEIGHT } = graph.graph() as { width?: number; height?: number };
  return {
    width,
    height,
    nodes: found.memories.map((of) => ({ of, ...(graph.node(of.id) as { x: number; y: number }) })),
    edges: found.bonds.map((each) => {
      const { points } = graph.edge(each.before, each.after) as { points: { x: number; y: number }[] };
      const path = points.map((point, at) => `${at ? "L" : "M"}${point.x.toFixed(1)} ${point.y.toFixed(1)}`).join(" ");
      return { key: `${each.before} ${each.after} ${each.how}`, how: each.how, path };
    }),
  };
}
