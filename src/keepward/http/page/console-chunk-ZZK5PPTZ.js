<<<<<<<< HEAD:src/keepward/http/page/console-chunk-ZZK5PPTZ.js
import{a as p,ba as a,mb as e,za as n}from"./console-chunk-TU2EYZMA.js";function i({memory:t}){return a(p,{children:[t.subject?a("span",{children:["about ",a(e,{name:t.subject})]}):null,a("span",{children:["said by ",a(e,{name:t.speaker??t.text_by})]}),a(n,{at:t.text_at})]})}export{i as a};
========
import{a as p,ba as a,nb as e,za as n}from"./console-chunk-JVQFQZX2.js";function i({memory:t}){return a(p,{children:[t.subject?a("span",{children:["about ",a(e,{name:t.subject})]}):null,a("span",{children:["said by ",a(e,{name:t.speaker??t.text_by})]}),a(n,{at:t.text_at})]})}export{i as a};
>>>>>>>> df3b8a74 (Build the console):src/keepward/http/page/console-chunk-TMMAGAP6.js
