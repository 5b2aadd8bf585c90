addEventListener('load',async()=>{ const t0=performance.now();
await Plotly.newPlot('a',[{type:'heatmap',z:[[1,2],[3,4]],xgap:1}],{},{responsive:true,displaylogo:false});
await Plotly.newPlot('b',[{x:[1,2],y:[1,3],error_y:{array:[1,1]},mode:'lines+markers'},{type:'bar',x:[1,2],y:[3,1]}],{},{responsive:true});
console.info('drawn',t0,performance.now()-t0);
const u=await Plotly.toImage('a',{format:'png'}); console.info('png',u.length);
});
