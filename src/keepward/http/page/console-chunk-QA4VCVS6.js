import{c as e,e as o}from"./console-chunk-TXUSXPNL.js";var u=140;function T(t){let[s,n]=e(t);return o(()=>{let r=setTimeout(()=>n(t),u);return()=>clearTimeout(r)},[t]),s}export{T as a};
